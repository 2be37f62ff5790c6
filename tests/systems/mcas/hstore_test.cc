// hstore as a whole: MCAS, sections 3.2.1 and 3.2.2.
#include <gtest/gtest.h>

#include <random>

#include "tests/support/seed.h"
#include "tests/systems/mcas/engine_support.h"

namespace perdura::systems::mcas {
namespace {

using namespace test;

const Bytes kLengths[] = {0, 3, 16, 17, 64, 100, 700, 5000};

// Writes that one operation causes.
pmem::WriteCounts cost_of(const std::function<void()>& operation) {
  const pmem::Writes before = pmem::thread_write_meter().writes();
  operation();
  pmem::Writes after = pmem::thread_write_meter().writes();
  after -= before;
  return after.local_store;
}

TEST(Hstore, KeepsKeysAndValuesOfAnyLength) {
  FreshEngine fresh(shape_of(8, 63, 16 * KiB, 64 * KiB, 16));
  Contents expected;
  std::uint64_t number = 0;
  for (const Bytes key : kLengths) {
    for (const Bytes value : kLengths) {
      const std::string name = text_of(++number, key);
      expected[name] = text_of(number, value);
      ASSERT_TRUE(fresh.engine.put(name, expected[name]));
    }
  }
  EXPECT_EQ(fresh.engine.contents(), expected);
  for (const auto& [key, value] : expected) EXPECT_EQ(fresh.engine.get(key), value);
  EXPECT_EQ(fresh.engine.audit(), "");
}

TEST(Hstore, SmallKeysAndValuesAreInlined) {
  FreshEngine fresh(small_shape());
  const std::uint64_t before = fresh.engine.engine().heap().objects();
  ASSERT_TRUE(fresh.engine.put("0123456789abcdef", "0123456789ABCDEF"));
  EXPECT_EQ(fresh.engine.engine().heap().objects(), before);
  ASSERT_TRUE(fresh.engine.put("0123456789abcdefg", "0123456789ABCDEFG"));
  EXPECT_EQ(fresh.engine.engine().heap().objects(), before + 2);
}

// docs/systems/mcas.md has this table.
TEST(Hstore, FlushesAndFencesOfOperations) {
  FreshEngine fresh(shape_of(128, 63, 16 * KiB, 64 * KiB, 16));
  TestEngine& engine = fresh.engine;
  const auto flushes_and_fences = [&](const std::function<void()>& operation) {
    const pmem::WriteCounts cost = cost_of(operation);
    return std::pair(cost.flushes, cost.fences);
  };
  const auto put = [&](const std::string& key, Bytes length) {
    return flushes_and_fences([&] { engine.put(key, std::string(length, 'x')); });
  };
  using Pair = std::pair<std::uint64_t, std::uint64_t>;
  // Memory that the pool is given costs more, once.
  put("another key of over 16 bytes", 64);
  put("of as many bytes", 4096);
  EXPECT_EQ(put("inlined", 16), Pair(1, 1));
  EXPECT_EQ(put("inlined", 16), Pair(1, 1));
  EXPECT_EQ(put("in the heap", 64), Pair(3, 2));
  EXPECT_EQ(put("in the heap", 64), Pair(2, 2));
  EXPECT_EQ(put("of 4 KiB", 4096), Pair(66, 2));
  EXPECT_EQ(put("of 4 KiB", 4096), Pair(65, 2));
  EXPECT_EQ(put("a key of more than sixteen bytes", 64), Pair(4, 2));
  EXPECT_EQ(flushes_and_fences([&] { engine.erase("in the heap"); }), Pair(1, 1));
  EXPECT_EQ(flushes_and_fences([&] { engine.get("of 4 KiB"); }), Pair(0, 0));
}

TEST(Hstore, APutThatFindsNoRoomKeepsThePreviousValue) {
  FreshEngine fresh(shape_of(4, 3, 256, 512, 8));
  Contents there;
  std::vector<std::string> refused;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const std::string key = std::to_string(i);
    const std::string value = text_of(i, 64);
    (fresh.engine.put(key, value) ? (void)(there[key] = value) : refused.push_back(key));
  }
  ASSERT_FALSE(refused.empty());
  EXPECT_EQ(fresh.engine.contents(), there);
  const std::string first = there.begin()->first;
  EXPECT_FALSE(fresh.engine.put(first, text_of(0, 500)));
  EXPECT_EQ(fresh.engine.contents(), there);
  EXPECT_EQ(fresh.engine.audit(), "");
  // Deletes work in a full store, and what they free can be used again.
  for (const auto& [key, value] : there) EXPECT_TRUE(fresh.engine.erase(key));
  EXPECT_TRUE(fresh.engine.put(refused.front(), text_of(1, 64)));
  EXPECT_EQ(fresh.engine.audit(), "");
}

TEST(Hstore, ATableThatMustNotGrowIsFull) {
  FreshEngine fresh(shape_of(4, 63, 256, 512, 64, 2));
  std::uint64_t there = 0;
  for (std::uint64_t i = 0; i < 20; ++i) there += fresh.engine.put(std::to_string(i), "v") ? 1 : 0;
  EXPECT_EQ(there, 8U);
  EXPECT_TRUE(fresh.engine.put("0", "another value")) << "an update needs no entry";
}

TEST(Hstore, ReservedMemoryBecomesAValueOrIsGivenBack) {
  FreshEngine fresh(small_shape());
  hstore::Hstore& engine = fresh.engine.engine();
  const std::uint64_t objects = engine.heap().objects();
  for (const Bytes length : {Bytes{0}, Bytes{5}, Bytes{64}, Bytes{300}}) {
    const std::uint64_t before = engine.heap().objects();
    const std::optional<Place> place = engine.reserve(length);
    ASSERT_TRUE(place);
    EXPECT_EQ(place->length, length);
    EXPECT_EQ(fresh.engine.audit(), "") << "nothing refers to it, and it is not free";
    engine.release(*place);
    EXPECT_EQ(engine.heap().objects(), before);
    ASSERT_TRUE(fresh.engine.put_reserved("key", std::string(length, 'x')));
    EXPECT_EQ(fresh.engine.get("key"), std::string(length, 'x'));
    EXPECT_EQ(engine.heap().objects(), objects + 1) << "the previous value is free";
    EXPECT_EQ(fresh.engine.audit(), "");
  }
  EXPECT_TRUE(fresh.engine.erase("key"));
  EXPECT_EQ(engine.heap().objects(), objects);
}

// "We must 'reconstitute' its state after restart ... uses the key-value length information that is
// stored in PM to rebuild the allocation state."
TEST(Hstore, BehavesLikeAMapAndIsTheSameAfterARestart) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  std::uint64_t returned = 0;
  for (const TestShape& shape :
       {small_shape(), shape_of(4, 63, 256, 512, 120), shape_of(128, 63, 16 * KiB, 32 * KiB, 20)}) {
    std::mt19937_64 random(seed);
    FreshEngine fresh(shape);
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
      PlainMemory copy(Image(fresh.memory.bytes().begin(), fresh.memory.bytes().end()));
      TestEngine again(copy.region(), shape);
      again.recover(fresh.root);
      ASSERT_EQ(again.contents(), expected);
      ASSERT_EQ(again.audit(), "");
      ASSERT_TRUE(again.engine().heap() == fresh.engine.engine().heap());
      ASSERT_EQ(again.engine().heap().free_bytes(), fresh.engine.engine().heap().free_bytes());
    }
    returned += fresh.engine.engine().statistics().heap_regions_returned;
    EXPECT_GT(fresh.engine.engine().statistics().regions_added, 1U);
  }
  EXPECT_GT(returned, 10U);
}

}  // namespace
}  // namespace perdura::systems::mcas
