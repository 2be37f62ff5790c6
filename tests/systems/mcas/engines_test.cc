// What all storage engines have in common: each behaves like a map, keeps what it has when it is
// full, and can account for all of its memory (MCAS, section 3.2).
#include <gtest/gtest.h>

#include <random>

#include "tests/support/seed.h"
#include "tests/systems/mcas/engine_support.h"

namespace perdura::systems::mcas {
namespace {

using namespace test;

class Engines : public testing::TestWithParam<EngineKind> {};
INSTANTIATE_TEST_SUITE_P(, Engines,
                         testing::Values(EngineKind::hstore, EngineKind::hstore_cc,
                                         EngineKind::mapstore),
                         name_of);

TEST_P(Engines, KeepKeysAndValuesOfAnyLength) {
  FreshEngine fresh(shape_of(8, 63, 16 * KiB, 64 * KiB, 16), GetParam());
  Contents expected;
  std::uint64_t number = 0;
  for (const Bytes key : kLengths) {
    for (const Bytes value : kLengths) {
      const std::string name = text_of(++number, key);
      expected[name] = text_of(number, value);
      ASSERT_TRUE(fresh.engine.put(name, expected[name]));
    }
  }
  ASSERT_TRUE(fresh.engine.put("", "an empty key"));
  expected[""] = "an empty key";
  EXPECT_EQ(fresh.engine.contents(), expected);
  for (const auto& [key, value] : expected) EXPECT_EQ(fresh.engine.get(key), value);
  EXPECT_EQ(fresh.engine.engine().statistics().items, expected.size());
  EXPECT_EQ(fresh.engine.audit(), "");
}

// Each allocation of a history fails in turn, of keys, values, reserved memory and segments. The
// operation that needs it has no effect, and nothing is lost; the history goes on, and so does it
// after a restart.
TEST_P(Engines, AnAllocationThatFailsAtAnyPlaceLosesNothing) {
  constexpr std::uint64_t kOperations = 60;
  std::uint64_t made = 1;  // in a run in which none fails, once that has ended
  std::uint64_t refused = 0;
  for (std::uint64_t fails = 0; fails < made; ++fails) {
    SCOPED_TRACE(testing::Message() << "allocation " << fails << " fails");
    std::uint64_t count = 0;
    bool counts = false;
    TestShape shape = shape_of(4, 3, 256, 512, 512);
    shape.engine.heap.refuses = [&] { return counts && ++count == fails; };
    FreshEngine fresh(shape, GetParam());
    counts = true;
    Contents expected;
    for (std::uint64_t i = 0; i < kOperations; ++i) {
      const std::string key = text_of(i % 23, kLengths[i % 5]);
      const std::string value = text_of(i, kLengths[(i + i / 5) % 7]);
      if (i % 9 == 8) {
        ASSERT_EQ(fresh.engine.erase(key), expected.erase(key) > 0);
        continue;
      }
      const bool reserves = i % 4 == 3;
      const bool done =
          reserves ? fresh.engine.put_reserved(key, value) : fresh.engine.put(key, value);
      if (done) expected[key] = value;
      refused += done ? 0 : 1;
      ASSERT_EQ(done ? "" : fresh.engine.audit(), "") << "operation " << i;
    }
    ASSERT_EQ(fresh.engine.contents(), expected);
    ASSERT_EQ(fresh.engine.audit(), "");
    if (fails == 0) made = count + 1;
    if (GetParam() == EngineKind::mapstore) continue;
    PlainMemory restarted(fresh.image());
    TestEngine engine(restarted.region(), shape, GetParam());
    counts = false;
    engine.recover(fresh.root);
    ASSERT_EQ(engine.contents(), expected);
    ASSERT_EQ(engine.audit(), "");
  }
  EXPECT_GT(made, kOperations / 2) << "nearly each operation needs memory";
  EXPECT_EQ(refused, made - 1) << "each of them was of one operation";
}

TEST_P(Engines, APutThatFindsNoRoomKeepsThePreviousValue) {
  FreshEngine fresh(shape_of(4, 3, 256, 512, 8), GetParam());
  Contents there;
  std::vector<std::string> refused;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const std::string key = std::to_string(i);
    const std::string value = text_of(i, 64);
    (fresh.engine.put(key, value) ? (void)(there[key] = value) : refused.push_back(key));
  }
  ASSERT_FALSE(refused.empty());
  EXPECT_EQ(fresh.engine.contents(), there);
  const std::string first = there.begin()->first;
  EXPECT_FALSE(fresh.engine.put(first, text_of(0, 500)));
  EXPECT_FALSE(fresh.engine.put_reserved(first, text_of(0, 500)));
  EXPECT_EQ(fresh.engine.contents(), there);
  EXPECT_EQ(fresh.engine.audit(), "");
  // Deletes work in a full store, and what they free can be used again.
  for (const auto& [key, value] : there) EXPECT_TRUE(fresh.engine.erase(key));
  EXPECT_TRUE(fresh.engine.put(refused.front(), text_of(1, 64)));
  EXPECT_EQ(fresh.engine.audit(), "");
}

TEST_P(Engines, ReservedMemoryBecomesAValueOrIsGivenBack) {
  FreshEngine fresh(small_shape(), GetParam());
  Engine& engine = fresh.engine.engine();
  const auto used = [&] {
    const EngineStatistics statistics = engine.statistics();
    return statistics.capacity - statistics.free;
  };
  const Bytes before = used();
  for (const Bytes length : {Bytes{0}, Bytes{5}, Bytes{64}, Bytes{300}}) {
    ASSERT_TRUE(fresh.engine.put_reserved("key", std::string(length, 'x')));
    EXPECT_EQ(fresh.engine.get("key"), std::string(length, 'x'));
    const Bytes with_value = used();
    const std::optional<ByteRange> range = engine.reserve(length);
    ASSERT_TRUE(range);
    EXPECT_EQ(range->length, length);
    EXPECT_GT(used(), with_value);
    EXPECT_EQ(fresh.engine.audit(), "") << "nothing refers to it, and it is not free";
    engine.release(*range);
    EXPECT_EQ(used(), with_value);
    EXPECT_EQ(fresh.engine.audit(), "");
  }
  EXPECT_TRUE(fresh.engine.erase("key"));
  EXPECT_EQ(used(), before) << "the previous values are free";
}

// After a restart those in persistent memory are the same, and what was reserved is free.
TEST_P(Engines, BehaveLikeAMapAlsoAfterARestart) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  const bool persistent = GetParam() != EngineKind::mapstore;
  std::uint64_t returned = 0;
  for (const TestShape& shape :
       {small_shape(), shape_of(4, 63, 256, 512, 120), shape_of(128, 63, 16 * KiB, 32 * KiB, 20)}) {
    std::mt19937_64 random(seed);
    FreshEngine fresh(shape, GetParam());
    Engine& engine = fresh.engine.engine();
    Contents expected;
    for (int i = 0; i < 3000; ++i) {
      const std::uint64_t number = random() % 60;
      const std::string key = text_of(number, kLengths[number % 6]);
      if (random() % 3 == 0) {
        ASSERT_EQ(fresh.engine.erase(key), expected.erase(key) > 0);
      } else {
        const std::string value = text_of(random() % 1000, kLengths[random() % 7]);
        const bool reserved = random() % 4 == 0;
        if (reserved ? fresh.engine.put_reserved(key, value) : fresh.engine.put(key, value)) {
          expected[key] = value;
        }
      }
      const std::string looked_up = text_of(random() % 60, 0);
      ASSERT_EQ(fresh.engine.get(looked_up).has_value(), expected.contains(looked_up));
      if (i % 150 != 0) continue;
      ASSERT_EQ(fresh.engine.contents(), expected);
      ASSERT_EQ(fresh.engine.audit(), "");
      const std::optional<ByteRange> reserved = engine.reserve(64);
      PlainMemory copy(fresh.image());
      if (reserved) engine.release(*reserved);
      TestEngine again(copy.region(), shape, GetParam());
      again.recover(fresh.root);
      ASSERT_EQ(again.contents(), persistent ? expected : Contents{});
      ASSERT_EQ(again.engine().statistics().items, persistent ? expected.size() : 0);
      ASSERT_EQ(again.audit(), "");
      ASSERT_TRUE(again.put("another", "value") || expected.size() > 20);
      ASSERT_EQ(again.audit(), "");
    }
    returned += engine.statistics().heap_regions_returned;
    EXPECT_GT(engine.statistics().regions_added, 1U);
  }
  EXPECT_GT(returned, 10U);
}

}  // namespace
}  // namespace perdura::systems::mcas
