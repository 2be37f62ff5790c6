#include "services/kv/value.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "platform/base/random.h"

namespace perdura::ycsb {
namespace {

using Bytes = std::vector<std::byte>;

Bytes value_of(std::size_t size, std::uint64_t key, std::uint64_t version) {
  Bytes value(size, std::byte{0x5a});
  kv::fill_value(value, key, version);
  return value;
}

TEST(Value, TellsTheVersionThatWroteIt) {
  for (std::size_t size = 16; size <= 200; ++size) {
    for (std::uint64_t version : {0ULL, 1ULL, 77ULL, ~0ULL}) {
      EXPECT_EQ(kv::check_value(value_of(size, 123, version), 123), version) << size;
    }
  }
}

TEST(Value, TellsThePartOfTheVersionThatAShortValueHolds) {
  const std::uint64_t version = 0x1122334455667788;
  EXPECT_EQ(kv::check_value(value_of(15, 9, version), 9), 0x22334455667788U);
  EXPECT_EQ(kv::check_value(value_of(8, 9, version), 9), 0x55667788U);
  EXPECT_EQ(kv::check_value(value_of(3, 9, version), 9), 0x88U);
  EXPECT_EQ(kv::check_value(value_of(1, 9, version), 9), 0U);
  EXPECT_EQ(kv::check_value(value_of(0, 9, version), 9), 0U);
}

TEST(Value, EmbedsKeyNumberAndVersionInPlain) {
  const Bytes value = value_of(16, 0x0102030405, 0x1122334455667788);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(value[static_cast<std::size_t>(i)], std::byte(5 - i));
  EXPECT_EQ(value[8], std::byte{0x88});
  EXPECT_EQ(value[15], std::byte{0x11});
  EXPECT_EQ(kv::stored_key_number(value), 0x0102030405U);
  EXPECT_EQ(kv::stored_key_number(std::span(value).first(kv::kLeastWithKey - 1)), std::nullopt);
}

TEST(Value, DetectsEveryFlippedBit) {
  for (std::size_t size : {16, 17, 24, 31, 64, 100}) {
    Bytes value = value_of(size, 42, 1000);
    for (std::size_t bit = 0; bit < 8 * size; ++bit) {
      value[bit / 8] ^= std::byte(1U << (bit % 8));
      EXPECT_FALSE(kv::check_value(value, 42).has_value()) << "size " << size << ", bit " << bit;
      value[bit / 8] ^= std::byte(1U << (bit % 8));
    }
    EXPECT_TRUE(kv::check_value(value, 42).has_value());
  }
}

// A reader that overlaps an update sees the front of one value and the back of another.
TEST(Value, DetectsTornValuesAtEverySeam) {
  for (std::size_t size : {16, 40, 64, 1000}) {
    const Bytes before = value_of(size, 7, 1);
    const Bytes after = value_of(size, 7, 2);
    for (std::size_t seam = 1; seam < size; ++seam) {
      Bytes torn = before;
      std::copy(after.begin(), after.begin() + static_cast<std::ptrdiff_t>(seam), torn.begin());
      if (torn == before || torn == after) continue;
      EXPECT_FALSE(kv::check_value(torn, 7).has_value()) << "size " << size << ", seam " << seam;
    }
  }
}

TEST(Value, DetectsTheValueOfAnotherKey) {
  for (std::size_t size : {8, 16, 64}) {
    for (std::uint64_t key = 0; key < 1000; ++key) {
      if (key == 500) continue;
      EXPECT_FALSE(kv::check_value(value_of(size, key, 3), 500).has_value());
    }
  }
}

TEST(Value, DetectsZerosAndAShiftedValue) {
  EXPECT_FALSE(kv::check_value(Bytes(64), 0).has_value());
  EXPECT_FALSE(kv::check_value(Bytes(16), 0).has_value());
  const Bytes value = value_of(128, 1, 1);
  EXPECT_FALSE(kv::check_value(std::span(value).subspan(8), 1).has_value());
  EXPECT_TRUE(kv::check_value(std::span(value).first(120), 1).has_value())
      << "the length is the store's";
}

TEST(Value, AcceptsForeignShortValuesAsRarelyAsDocumented) {
  int accepted = 0;
  constexpr int kTrials = 100'000;
  for (std::uint64_t key = 1; key <= kTrials; ++key) {
    accepted += kv::check_value(value_of(1, key, 0), 0).has_value() ? 1 : 0;
  }
  // 1 in 256, within five standard deviations.
  EXPECT_NEAR(accepted, kTrials / 256.0, 5 * 20);
}

TEST(Value, WritesItsSizeAndNothingElse) {
  for (std::size_t size = 0; size <= 80; ++size) {
    Bytes buffer(size + 16, std::byte{0x5a});
    kv::fill_value(std::span(buffer).first(size), 1, 2);
    EXPECT_EQ(std::count(buffer.begin() + static_cast<std::ptrdiff_t>(size), buffer.end(),
                         std::byte{0x5a}),
              16);
  }
}

// So that data-comparison write and compression find nothing to save: two versions differ in half
// of the bits of their bodies.
TEST(Value, LooksRandomFromVersionToVersion) {
  const Bytes first = value_of(16 + 8000, 1, 1);
  const Bytes second = value_of(16 + 8000, 1, 2);
  int flipped = 0;
  for (std::size_t i = 16; i < first.size(); ++i) {
    flipped += std::popcount(static_cast<unsigned char>(first[i] ^ second[i]));
  }
  EXPECT_NEAR(flipped, 32'000, 5 * 126.5);  // five standard deviations of 64,000 fair coins
}

}  // namespace
}  // namespace perdura::ycsb
