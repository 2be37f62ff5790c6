#include "services/kv/key_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <unordered_set>

#include "services/kv/fnv.h"

namespace perdura::ycsb {
namespace {

std::string key_of(const kv::KeyFormat& format, std::uint64_t number) {
  std::string key(format.size(), '\xff');
  format.write(number, std::as_writable_bytes(std::span(key)));
  return key;
}

TEST(KeyFormat, WritesTheNamesOfYcsbWithZerosBetween) {
  const kv::KeyFormat format(24, "user", kv::InsertOrder::hashed);
  EXPECT_EQ(key_of(format, 0), "user06284781860667377211");
  EXPECT_EQ(key_of(format, 1), "user08517097267634966620");
  EXPECT_EQ(key_of(kv::KeyFormat(30, "user", kv::InsertOrder::hashed), 0),
            "user00000006284781860667377211");
}

// YCSB folds two hashes of opposite sign to one name; the twentieth digit keeps them apart.
TEST(KeyFormat, KeepsTheSignThatYcsbDrops) {
  const kv::KeyFormat format(24, "user", kv::InsertOrder::hashed);
  int marked = 0;
  for (std::uint64_t number = 0; number < 1000; ++number) {
    const bool is_negative = (kv::fnv1a_64(number) >> 63) != 0;
    const std::string key = key_of(format, number);
    EXPECT_EQ(key[4], is_negative ? '0' : '1');
    EXPECT_EQ(std::stoull(key.substr(5)), kv::ycsb_hash(number));
    marked += is_negative ? 0 : 1;
  }
  EXPECT_GT(marked, 0);
}

TEST(KeyFormat, WritesOrderedNamesAsPaddedNumbers) {
  EXPECT_EQ(key_of(kv::KeyFormat(24, "user", kv::InsertOrder::ordered), 42),
            "user00000000000000000042");
  EXPECT_EQ(key_of(kv::KeyFormat(17, "user", kv::InsertOrder::ordered), (1ULL << 40) - 1),
            "user1099511627775");
}

TEST(KeyFormat, FillsShortKeysWithTheNumberItself) {
  EXPECT_EQ(key_of(kv::KeyFormat(8, "user", kv::InsertOrder::ordered), 0x0102030405),
            std::string("\0\0\0\1\2\3\4\5", 8));
  EXPECT_EQ(key_of(kv::KeyFormat(2, "user", kv::InsertOrder::ordered), 0x0102),
            std::string("\1\2"));
  EXPECT_EQ(key_of(kv::KeyFormat(16, "user", kv::InsertOrder::hashed), 7).substr(0, 8), "user0000");
}

TEST(KeyFormat, WritesExactlyItsSize) {
  for (std::size_t size = 1; size <= 64; ++size) {
    for (kv::InsertOrder order : {kv::InsertOrder::hashed, kv::InsertOrder::ordered}) {
      const kv::KeyFormat format(size, "user", order);
      std::string buffer(size + 8, '#');
      format.write(3, std::as_writable_bytes(std::span(buffer)));
      EXPECT_EQ(buffer.substr(size), "########");
    }
  }
}

TEST(KeyFormat, NeverGivesTwoNumbersTheSameKey) {
  for (std::size_t size : {1, 2, 3, 4, 5, 7, 8, 9, 16, 23, 24, 40}) {
    for (kv::InsertOrder order : {kv::InsertOrder::hashed, kv::InsertOrder::ordered}) {
      const kv::KeyFormat format(size, "user", order);
      const std::uint64_t numbers = std::min<std::uint64_t>(format.capacity(), 30'000);
      std::unordered_set<std::string> keys;
      for (std::uint64_t number = 0; number < numbers; ++number) {
        keys.insert(key_of(format, number));
        keys.insert(key_of(format, format.capacity() - 1 - number));
      }
      EXPECT_EQ(keys.size(), std::min(2 * numbers, format.capacity())) << "size " << size;
    }
  }
}

TEST(KeyFormat, OrdersOrderedKeysAsTheirNumbers) {
  for (std::size_t size : {4, 8, 16, 24}) {
    const kv::KeyFormat format(size, "user", kv::InsertOrder::ordered);
    for (std::uint64_t number = 1; number < 100'000; number += 97) {
      ASSERT_LT(key_of(format, number - 1), key_of(format, number));
    }
  }
}

TEST(KeyFormat, ScattersHashedKeys) {
  for (std::size_t size : {2, 8, 16, 24}) {
    const kv::KeyFormat format(size, "user", kv::InsertOrder::hashed);
    int ascending = 0;
    for (std::uint64_t number = 0; number < 1000; ++number) {
      ascending += key_of(format, number) < key_of(format, number + 1) ? 1 : 0;
    }
    EXPECT_NEAR(ascending, 500, 100) << "size " << size;
  }
}

}  // namespace
}  // namespace perdura::ycsb
