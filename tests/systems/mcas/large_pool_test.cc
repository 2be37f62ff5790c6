// Pools of more than 4 GiB: no offset or length is cut off to 32 bits, by any engine, and the same
// is there after a restart. Memory that nobody touches takes none, so values are reserved and not
// written.
#include <sys/mman.h>

#include "tests/systems/mcas/engine_support.h"

namespace perdura::systems::mcas {
namespace {

using namespace test;

class SparseMemory {
 public:
  explicit SparseMemory(Bytes size)
      : size_(size),
        data_(::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)),
        region_("memory", pmem::Medium::pm, static_cast<std::byte*>(data_), size, nullptr,
                nullptr) {}
  SparseMemory(const SparseMemory&) = delete;
  ~SparseMemory() { ::munmap(data_, size_); }
  pmem::Region& region() { return region_; }

 private:
  Bytes size_;
  void* data_;
  pmem::Region region_;
};

class LargePools : public testing::TestWithParam<EngineKind> {};
INSTANTIATE_TEST_SUITE_P(, LargePools,
                         testing::Values(EngineKind::hstore, EngineKind::hstore_cc,
                                         EngineKind::mapstore),
                         name_of);

TEST_P(LargePools, HoldValuesOnBothSidesOfFourGiB) {
  constexpr Bytes kAtATime = 32 * MiB;
  const TestShape shape = shape_of(128, 63, MiB, kAtATime, 7 * GiB / kAtATime);
  SparseMemory memory(shape.size());
  const auto open = [&] { return TestEngine(memory.region(), shape, GetParam(), Flushing::none); };
  TestEngine first = open();
  const Bytes root = first.create();
  Engine& engine = first.engine();
  Contents expected;
  std::map<std::string, ByteRange> huge;
  for (int i = 0; i < 6; ++i) {
    const std::string small = "small " + std::to_string(i);
    expected[small] = std::string(5000, static_cast<char>('a' + i));
    ASSERT_TRUE(first.put(small, expected[small]));
    const std::string large = "a large one, number " + std::to_string(i);
    const std::optional<ByteRange> range = engine.reserve(GiB);
    ASSERT_TRUE(range);
    ASSERT_EQ(range->length, GiB);
    ASSERT_EQ(engine.put_reserved(as_key(large), *range), PutOutcome::done);
    huge[large] = *range;
    memory.region().store(range->offset, i);
    memory.region().store(range->end() - kWord, i);
  }
  EXPECT_GT(huge.rbegin()->second.offset, 5 * GiB);
  EXPECT_FALSE(engine.reserve(GiB)) << "there is less than that left";
  const auto check = [&](TestEngine& of, std::size_t items) {
    for (const auto& [key, value] : expected) EXPECT_EQ(of.get(key), value);
    for (const auto& [key, range] : huge) {
      EXPECT_EQ(of.engine().get(as_key(key)), range);
      const std::uint64_t number = static_cast<std::uint64_t>(key.back() - '0');
      EXPECT_EQ(memory.region().load(range.offset), number);
      EXPECT_EQ(memory.region().load(range.end() - kWord), number);
    }
    const EngineStatistics found = of.engine().statistics();
    EXPECT_EQ(found.items, items);
    EXPECT_EQ(found.capacity, 7 * GiB);
    EXPECT_LT(found.free, GiB);
    EXPECT_EQ(of.audit(), "");
  };
  check(first, 12);
  if (GetParam() == EngineKind::mapstore) return;
  TestEngine again = open();
  again.recover(root);
  check(again, 12);
  // What is given back beyond 4 GiB is found again, and joined.
  for (const auto& [key, range] : huge) {
    if (range.offset > 3 * GiB) {
      EXPECT_TRUE(again.erase(key));
    }
  }
  EXPECT_TRUE(again.engine().reserve(2 * GiB));
  EXPECT_EQ(again.audit(), "");
}

}  // namespace
}  // namespace perdura::systems::mcas
