// A ring whose other end is a process that is not trusted: whatever it writes there, this end stays
// within the ring and its buffer.
#include "platform/host/mapped_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace perdura {
namespace {

constexpr RingShape kShape{.slots = 4, .message_size = 96};

struct alignas(kCacheLine) Memory {
  std::vector<std::byte> bytes = std::vector<std::byte>(MappedRing::size(kShape) + kCacheLine);
  std::byte* first() {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
    return bytes.data() + (round_up(address, kCacheLine) - address);
  }
  MappedRing ring() {
    return {first(), kShape, nullptr, [](RingEnd&) {}};
  }
};

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(MappedRing, GivesMessagesOfAnyLengthInOrder) {
  Memory memory;
  MappedProducer producer(memory.ring());
  MappedConsumer consumer(memory.ring());
  std::vector<std::byte> into(kShape.message_size);
  for (std::size_t i = 0; i < 200; ++i) {
    const std::string message(i % (kShape.message_size + 1), static_cast<char>('a' + i % 26));
    ASSERT_TRUE(producer.try_push(bytes_of(message)));
    const auto length = consumer.try_pop(into);
    ASSERT_EQ(length, message.size());
    EXPECT_EQ(std::memcmp(into.data(), message.data(), *length), 0);
    EXPECT_FALSE(consumer.try_pop(into));
  }
  for (std::uint32_t i = 0; i < kShape.slots; ++i) EXPECT_TRUE(producer.try_push({}));
  EXPECT_FALSE(producer.try_push({})) << "it is full";
}

TEST(MappedRing, BelievesNoLengthAndNoCount) {
  std::mt19937_64 random(7);
  for (int run = 0; run < 2000; ++run) {
    Memory memory;
    MappedProducer producer(memory.ring());
    MappedConsumer consumer(memory.ring());
    std::vector<std::byte> into(kShape.message_size + 64, std::byte{0x5A});
    const auto room = std::span(into).first(kShape.message_size);
    for (int i = 0; i < 8; ++i) {
      producer.try_push(bytes_of(std::string(random() % 97, 'x')));
      // Any word of it may be anything; of the slots, a length above all.
      const std::size_t words = MappedRing::size(kShape) / sizeof(std::uint64_t);
      const std::uint64_t value = random() % 2 == 0 ? ~std::uint64_t{0} : random() % 2048;
      std::memcpy(memory.first() + random() % words * sizeof value, &value, sizeof value);
      const auto length = consumer.try_pop(room);
      EXPECT_LE(length.value_or(0), kShape.message_size);
    }
    EXPECT_TRUE(std::all_of(into.begin() + kShape.message_size, into.end(),
                            [](std::byte byte) { return byte == std::byte{0x5A}; }));
  }
}

}  // namespace
}  // namespace perdura
