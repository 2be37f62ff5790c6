// hstore and hstore-cc as a whole: MCAS, sections 3.2, 3.2.1 and 3.2.2.
#include <gtest/gtest.h>

#include <random>

#include "tests/support/seed.h"
#include "tests/systems/mcas/engine_support.h"

namespace perdura::systems::mcas {
namespace {

using namespace test;

class Hstore : public testing::TestWithParam<EngineKind> {};
INSTANTIATE_TEST_SUITE_P(, Hstore, testing::Values(EngineKind::hstore, EngineKind::hstore_cc),
                         name_of);

// Flushes and fences of one operation.
using Cost = std::pair<std::uint64_t, std::uint64_t>;
Cost cost_of(const std::function<void()>& operation) {
  const pmem::Writes before = pmem::thread_write_meter().writes();
  operation();
  pmem::Writes after = pmem::thread_write_meter().writes();
  after -= before;
  return {after.local_store.flushes, after.local_store.fences};
}

TEST_P(Hstore, SmallKeysAndValuesAreInlined) {
  FreshEngine fresh(small_shape(), GetParam());
  const Heap& heap = fresh.engine.hstore().heap();
  const Bytes before = heap.used_bytes();
  ASSERT_TRUE(fresh.engine.put("0123456789abcdef", "0123456789ABCDEF"));
  EXPECT_EQ(heap.used_bytes(), before);
  ASSERT_TRUE(fresh.engine.put("0123456789abcdefg", "0123456789ABCDEFG"));
  EXPECT_EQ(heap.used_bytes(), before + 2 * 32);
}

// docs/systems/mcas.md has this table.
TEST_P(Hstore, FlushesAndFencesOfOperations) {
  FreshEngine fresh(shape_of(128, 63, 16 * KiB, 64 * KiB, 16), GetParam());
  TestEngine& engine = fresh.engine;
  const bool logs = GetParam() == EngineKind::hstore_cc;
  const auto put = [&](const std::string& key, Bytes length) {
    return cost_of([&] { engine.put(key, std::string(length, 'x')); });
  };
  // Memory that the pool is given costs more, once.
  put("another key of over 16 bytes", 64);
  put("of as many bytes", 4096);
  EXPECT_EQ(put("inlined", 16), logs ? Cost(2, 2) : Cost(1, 1));
  EXPECT_EQ(put("inlined", 16), logs ? Cost(2, 2) : Cost(1, 1));
  EXPECT_EQ(put("in the heap", 64), logs ? Cost(5, 3) : Cost(3, 2));
  EXPECT_EQ(put("in the heap", 64), logs ? Cost(5, 4) : Cost(2, 2));
  EXPECT_EQ(put("of 4 KiB", 4096), logs ? Cost(68, 3) : Cost(66, 2));
  EXPECT_EQ(put("of 4 KiB", 4096), logs ? Cost(68, 4) : Cost(65, 2));
  EXPECT_EQ(put("a key of more than sixteen bytes", 64), logs ? Cost(7, 3) : Cost(4, 2));
  EXPECT_EQ(cost_of([&] { engine.erase("inlined"); }), logs ? Cost(3, 3) : Cost(1, 1));
  EXPECT_EQ(cost_of([&] { engine.erase("in the heap"); }), logs ? Cost(4, 3) : Cost(1, 1));
  EXPECT_EQ(cost_of([&] { engine.get("of 4 KiB"); }), Cost(0, 0));
}

TEST_P(Hstore, ATableThatMustNotGrowIsFull) {
  FreshEngine fresh(shape_of(4, 63, 256, 512, 64, 2), GetParam());
  std::uint64_t there = 0;
  for (std::uint64_t i = 0; i < 20; ++i) there += fresh.engine.put(std::to_string(i), "v") ? 1 : 0;
  EXPECT_EQ(there, 8U);
  EXPECT_TRUE(fresh.engine.put("0", "another value")) << "an update needs no entry";
}

// "We must 'reconstitute' its state after restart ... uses the key-value length information that is
// stored in PM to rebuild the allocation state." With a persistent allocator it is read.
TEST_P(Hstore, TheHeapIsTheSameAfterARestart) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  for (const TestShape& shape : {small_shape(), shape_of(128, 63, 16 * KiB, 32 * KiB, 20)}) {
    std::mt19937_64 random(seed);
    FreshEngine fresh(shape, GetParam());
    for (int i = 0; i < 2000; ++i) {
      const std::string key = text_of(random() % 60, kLengths[random() % 6]);
      if (random() % 3 == 0) {
        fresh.engine.erase(key);
      } else {
        fresh.engine.put(key, text_of(random() % 1000, kLengths[random() % kLengths.size()]));
      }
      if (i % 100 != 0) continue;
      PlainMemory copy(fresh.image());
      TestEngine again(copy.region(), shape, GetParam());
      EXPECT_FALSE(again.recover(fresh.root)) << "nothing was under way";
      ASSERT_TRUE(again.hstore().heap() == fresh.engine.hstore().heap());
      ASSERT_EQ(again.hstore().heap().used_bytes(), fresh.engine.hstore().heap().used_bytes());
    }
  }
}

// Memory that another pool had is free, whatever that has left in it.
TEST_P(Hstore, APoolInUsedMemoryIsEmpty) {
  const TestShape shape = small_shape();
  FreshEngine first(shape, GetParam());
  for (std::uint64_t i = 0; i < 40; ++i) first.engine.put(text_of(i, 20), text_of(i, 40 + i));
  PlainMemory memory(first.image());
  TestEngine second(memory.region(), shape, GetParam());
  const Bytes root = second.create();
  EXPECT_EQ(second.contents(), Contents{});
  EXPECT_EQ(second.audit(), "");
  const auto fill = [&](TestEngine& engine) {
    for (std::uint64_t i = 0; i < 20; ++i) {
      EXPECT_TRUE(engine.put(text_of(i, 20), text_of(i, 200 - i)));
    }
  };
  fill(second);
  EXPECT_EQ(second.audit(), "");
  TestEngine again(memory.region(), shape, GetParam());
  again.recover(root);
  EXPECT_EQ(again.contents(), second.contents());
  EXPECT_EQ(again.audit(), "");
}

// Counts the bytes that a program reads.
class ReadMeter final : public pmem::RegionModel {
 public:
  explicit ReadMeter(Image contents) : contents_(std::move(contents)) {}
  const Image& contents() const { return contents_; }
  Bytes bytes_read() const { return read_; }

  std::uint64_t load(Bytes offset) override {
    std::uint64_t value = 0;
    read(offset, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  void read(Bytes offset, std::span<std::byte> into) override {
    if (!into.empty()) std::memcpy(into.data(), &contents_[offset], into.size());
    read_ += into.size();
  }
  void store(Bytes offset, std::uint64_t value, const pmem::WordLayout&) override {
    write(offset, std::as_bytes(std::span(&value, 1)), false);
  }
  bool compare_exchange(Bytes, std::uint64_t&, std::uint64_t) override { return false; }
  void write(Bytes offset, std::span<const std::byte> from, bool) override {
    std::memcpy(&contents_[offset], from.data(), from.size());
  }
  void flush(Bytes, Bytes) override {}
  void drain() override {}

 private:
  Image contents_;
  Bytes read_ = 0;
};

// Of a restart, of so many items.
Bytes bytes_read_by_recovery(EngineKind kind, std::uint64_t items) {
  const TestShape shape = shape_of(128, 63, 64 * KiB, 256 * KiB, 16);
  FreshEngine fresh(shape, kind);
  for (std::uint64_t i = 0; i < items; ++i) {
    EXPECT_TRUE(fresh.engine.put(std::to_string(i), text_of(i, 64)));
  }
  const auto meter = std::make_shared<ReadMeter>(fresh.image());
  pmem::Region region("metered", pmem::Medium::pm, const_cast<std::byte*>(meter->contents().data()),
                      meter->contents().size(), meter, nullptr);
  TestEngine again(region, shape, kind);
  again.recover(fresh.root);
  EXPECT_EQ(again.engine().statistics().items, items);
  return meter->bytes_read();
}

// hstore-cc "does not require rebuilding after reset": it reads the map of its heap, at most 1/256
// of the memory, and no item.
TEST(HstoreCc, ARestartDoesNotLookAtItems) {
  const Bytes few = bytes_read_by_recovery(EngineKind::hstore_cc, 10);
  const Bytes many = bytes_read_by_recovery(EngineKind::hstore_cc, 10'000);
  EXPECT_LT(many - few, 16 * 256 * KiB / 256);
  EXPECT_GT(bytes_read_by_recovery(EngineKind::hstore, 10'000), 10'000 * kCacheLine / 8);
}

}  // namespace
}  // namespace perdura::systems::mcas
