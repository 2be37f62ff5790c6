#include "services/kv/short_copy.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace perdura::ycsb {
namespace {

constexpr std::size_t kRoom = 40;
using Room = std::array<std::byte, kRoom>;

Room numbered(int from) {
  Room room;
  for (std::size_t i = 0; i < kRoom; ++i)
    room[i] = static_cast<std::byte>(from + static_cast<int>(i));
  return room;
}

TEST(ShortCopy, CopiesAsManyBytesAsAskedAndNoMore) {
  for (std::size_t bytes = 0; bytes <= 32; ++bytes) {
    SCOPED_TRACE(testing::Message() << bytes << " bytes");
    const Room from = numbered(1);
    Room to = numbered(100);
    Room expected = to;
    std::memcpy(expected.data() + 4, from.data(), bytes);
    kv::copy_short(to.data() + 4, from.data(), bytes);
    EXPECT_EQ(to, expected);
  }
}

TEST(ShortCopy, LoadsAndStoresTheLowBytesOfAWord) {
  constexpr std::uint64_t kOnes = ~std::uint64_t{0};
  for (std::size_t bytes = 0; bytes <= 8; ++bytes) {
    SCOPED_TRACE(testing::Message() << bytes << " bytes");
    const Room from = numbered(0x81);
    std::uint64_t expected = 0;
    std::memcpy(&expected, from.data(), bytes);
    EXPECT_EQ(kv::load_short(from.data(), bytes), expected);

    Room to = numbered(100);
    Room expected_room = to;
    const std::uint64_t word = expected | (bytes == 8 ? 0 : kOnes << (8 * bytes));
    std::memcpy(expected_room.data() + 4, &word, bytes);
    kv::store_short(to.data() + 4, word, bytes);
    EXPECT_EQ(to, expected_room);
  }
}

}  // namespace
}  // namespace perdura::ycsb
