// How a history with failures recognizes values: only one that a single put has written, all of it
// and to that key, has a version. What a failure or a system leaves of one has none.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "services/boundaries.h"
#include "services/kv/crash_store.h"
#include "services/kv/value.h"

namespace perdura::services {
namespace {

using Bytewise = std::vector<std::byte>;

// All lengths that a generated plan may draw.
std::set<Bytes> drawn_lengths() {
  std::set<Bytes> lengths;
  pmem::RandomChoices random(1);
  for (int i = 0; i < 2000; ++i) lengths.insert(length_around_a_boundary(random));
  return lengths;
}

Bytewise value_of(const CrashLengths& lengths, std::uint64_t key, std::uint64_t version) {
  Bytewise value(lengths.of(version));
  kv::fill_value(value, key, version);
  return value;
}

class ValuesOfCrashes : public testing::Test {
 protected:
  static constexpr std::uint64_t kKey = 3;
  static constexpr std::uint64_t kVersion = 4;  // the next one has the other length

  static std::optional<std::uint64_t> version_of(const CrashLengths& lengths, std::uint64_t key,
                                                 const Bytewise& value) {
    return CrashFormat(lengths).version(crash_key(key, kWord), value);
  }
  static CrashLengths lengths_of(Bytes one, Bytes other) {
    const kv::KvSystem any{};  // takes values of all lengths
    return {any, KvCrashPlan{.lengths = {one, other}}};
  }
};

TEST_F(ValuesOfCrashes, AreThoseOfOnePut) {
  for (const Bytes length : drawn_lengths()) {
    const CrashLengths lengths = lengths_of(length, length + 1);
    for (const std::uint64_t version : {kVersion, kVersion + 1}) {
      EXPECT_EQ(version_of(lengths, kKey, value_of(lengths, kKey, version)), version) << length;
    }
    EXPECT_FALSE(version_of(lengths, kKey + 1, value_of(lengths, kKey, kVersion))) << length;
  }
}

TEST_F(ValuesOfCrashes, AreNotCutOrContinued) {
  for (const Bytes length : drawn_lengths()) {
    const CrashLengths lengths = lengths_of(length, length + 1);
    const Bytewise whole = value_of(lengths, kKey, kVersion);
    for (const Bytes other : drawn_lengths()) {
      if (other == length) continue;
      Bytewise value(other);
      // As the same put would have written it, had it been so long.
      kv::fill_value(value, kKey, kVersion);
      EXPECT_FALSE(version_of(lengths, kKey, value)) << other << " bytes instead of " << length;
    }
  }
}

// The header of a value has a check of 24 bits, so two versions are taken that differ in it.
TEST_F(ValuesOfCrashes, AreNotTornAtAnyByte) {
  for (const Bytes length : drawn_lengths()) {
    const CrashLengths lengths = lengths_of(length, length + 1);
    const Bytewise before = value_of(lengths, kKey, kVersion);
    const Bytewise after = value_of(lengths, kKey, kVersion + 2);
    ASSERT_EQ(before.size(), after.size());
    for (Bytes torn = 1; torn < length; ++torn) {
      Bytewise value = before;
      std::copy_n(after.begin(), torn, value.begin());
      if (value == before || value == after) continue;
      EXPECT_FALSE(version_of(lengths, kKey, value)) << torn << " bytes of " << length;
    }
  }
}

}  // namespace
}  // namespace perdura::services
