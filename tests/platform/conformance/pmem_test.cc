// Regions of persistent memory and of DRAM, as the node's own threads use them.
#include <array>
#include <stdexcept>

#include "platform/base/error.h"
#include "tests/platform/conformance/conformance.h"

namespace perdura::conformance {

using pmem::Medium;
using pmem::Region;

namespace {

// Runs a body on a thread of node 0 alone.
void on_one_thread(Platform& platform, CompletionMode mode,
                   const std::function<void(Thread&)>& body) {
  platform.start(0, 1, mode, [&](Thread& thread) -> Task<> {
    body(thread);
    co_return;
  });
  platform.run();
}

}  // namespace

TEST_P(PmemRegion, IsZeroAtFirstAndKnowsItself) {
  const auto platform = make({.node_count = 1});
  on_one_thread(*platform, mode(), [](Thread& thread) {
    for (const Medium medium : {Medium::pm, Medium::dram}) {
      const auto region = thread.node.create_region("fresh", 12345, medium);
      EXPECT_EQ(region->name(), "fresh");
      EXPECT_EQ(region->size(), 12345U);
      EXPECT_EQ(region->medium(), medium);
      EXPECT_EQ(contents(*region, 0, 12345), std::vector<std::byte>(12345));
    }
  });
}

TEST_P(PmemRegion, HoldsWhatIsStored) {
  const auto platform = make({.node_count = 1});
  on_one_thread(*platform, mode(), [](Thread& thread) {
    for (const Medium medium : {Medium::pm, Medium::dram}) {
      const auto region = thread.node.create_region("data", 64 * KiB, medium);
      region->store(8, 0x0123456789ABCDEF);
      EXPECT_EQ(region->load(8), 0x0123456789ABCDEFU);
      for (std::size_t n = 0; n < 150; ++n) {
        const Bytes at = 1024 + n * 256 + n % 13;
        region->write(at, pattern(n, 1));
        EXPECT_EQ(contents(*region, at, n), pattern(n, 1)) << n;
        std::vector<std::byte> unchanging(n);
        region->read_unchanging(at, unchanging);
        EXPECT_EQ(unchanging, pattern(n, 1)) << n;
        region->write_streaming(at, pattern(n, 2));
        EXPECT_EQ(contents(*region, at, n), pattern(n, 2)) << n;
        EXPECT_EQ(contents(*region, at + n, 1).front(), std::byte{0});
        EXPECT_EQ(contents(*region, at - 1, 1).front(), std::byte{0});
      }
      region->persist(0, region->size());
      const std::array<std::uint32_t, 5> object{1, 2, 3, 4, 5};
      region->write_object(100, object);
      EXPECT_EQ((region->read_object<std::array<std::uint32_t, 5>>(100)), object);
    }
  });
}

TEST_P(PmemRegion, CompareExchangeReplacesOnlyWhatItExpects) {
  const auto platform = make({.node_count = 1});
  on_one_thread(*platform, mode(), [](Thread& thread) {
    const auto region = thread.node.create_region("word", 4096, Medium::pm);
    std::uint64_t expected = 0;
    EXPECT_TRUE(region->compare_exchange(64, expected, 5));
    expected = 4;
    EXPECT_FALSE(region->compare_exchange(64, expected, 9));
    EXPECT_EQ(expected, 5U);
    EXPECT_EQ(region->load(64), 5U);
  });
}

TEST_P(PmemRegion, PersistentMemoryIsFoundAgainByItsName) {
  const auto platform = make({.node_count = 1});
  on_one_thread(*platform, mode(), [](Thread& thread) {
    Node& node = thread.node;
    EXPECT_EQ(node.open_region("pool"), nullptr);
    auto region = node.create_region("pool", 8192, Medium::pm);
    region->store(4096, 31);
    region->persist(4096, 8);
    EXPECT_THROW(node.create_region("pool", 8192, Medium::pm), UsageError);
    region.reset();
    EXPECT_THROW(node.create_region("pool", 8192, Medium::pm), UsageError);
    region = node.open_region("pool");
    if (region == nullptr) throw std::runtime_error("the region is gone");
    EXPECT_EQ(region->size(), 8192U);
    EXPECT_EQ(region->medium(), Medium::pm);
    EXPECT_EQ(region->load(4096), 31U);
    region.reset();
    node.remove_region("pool");
    EXPECT_EQ(node.open_region("pool"), nullptr);
    EXPECT_EQ(node.create_region("pool", 4096, Medium::pm)->load(0), 0U);
  });
}

TEST_P(PmemRegion, OnADiskIsFoundAgainByItsName) {
  const auto platform = make({.node_count = 1});
  on_one_thread(*platform, mode(), [](Thread& thread) {
    Node& node = thread.node;
    auto region = node.create_region("file", 8192, Medium::disk);
    EXPECT_EQ(region->load(4096), 0U);
    region->store(4096, 31);
    region->persist(4096, 8);
    EXPECT_THROW(node.create_region("file", 8192, Medium::disk), UsageError);
    region = node.open_region("file");
    if (region == nullptr) throw std::runtime_error("the region is gone");
    EXPECT_EQ(region->size(), 8192U);
    EXPECT_EQ(region->medium(), Medium::disk);
    EXPECT_EQ(region->load(4096), 31U);
    EXPECT_EQ(node.pm_writes(), pmem::Writes{}) << "it is no persistent memory";
    region.reset();
    node.remove_region("file");
    EXPECT_EQ(node.open_region("file"), nullptr);
  });
}

TEST_P(PmemRegion, CanBeOpenTwice) {
  const auto platform = make({.node_count = 1});
  on_one_thread(*platform, mode(), [](Thread& thread) {
    auto first = thread.node.create_region("pool", 4096, Medium::pm);
    auto second = thread.node.open_region("pool");
    if (second == nullptr) throw std::runtime_error("cannot open it twice");
    first->store(0, 7);
    EXPECT_EQ(second->load(0), 7U);
    first.reset();
    second->store(8, 8);
    static_cast<void>(thread.endpoint.register_memory(*second, fabric::Access::remote_all));
  });
}

TEST_P(PmemRegion, HasOneOwnerAtATime) {
  const auto platform = make({.node_count = 1});
  on_one_thread(*platform, mode(), [](Thread& thread) {
    Node& node = thread.node;
    EXPECT_THROW(static_cast<void>(node.own_region("pool")), UsageError);
    const auto pool = node.create_region("pool", 4096, Medium::pm);
    auto owner = node.own_region("pool");
    EXPECT_NE(owner, nullptr);
    EXPECT_EQ(node.own_region("pool"), nullptr);
    EXPECT_NE(node.open_region("pool"), nullptr) << "it may be open";
    const auto owner_of_part = node.own_region("pool", Node::kRegionParts - 1);
    EXPECT_NE(owner_of_part, nullptr) << "a part has an owner of its own";
    EXPECT_EQ(node.own_region("pool", Node::kRegionParts - 1), nullptr);
    EXPECT_NE(node.own_region("pool", 1), nullptr);
    owner.reset();
    owner = node.own_region("pool");
    EXPECT_NE(owner, nullptr);
    EXPECT_EQ(node.own_region("pool"), nullptr);
  });
}

TEST_P(PmemRegion, OnADiskHasAnOwnerOfItsOwn) {
  const auto platform = make({.node_count = 1});
  on_one_thread(*platform, mode(), [](Thread& thread) {
    Node& node = thread.node;
    const auto pool = node.create_region("pool", 4096, Medium::pm);
    const auto file = node.create_region("file", 4096, Medium::disk);
    const auto owner = node.own_region("pool");
    const auto owner_of_file = node.own_region("file");
    EXPECT_NE(owner_of_file, nullptr);
    EXPECT_EQ(node.own_region("file"), nullptr);
  });
}

TEST_P(PmemRegion, NodesHaveTheirOwnNames) {
  const auto platform = make({.node_count = 2});
  const auto barrier = platform->create_barrier(2);
  for (NodeId node = 0; node < 2; ++node) {
    platform->start(node, 1, mode(), [&, node](Thread& thread) -> Task<> {
      const auto region = thread.node.create_region("same", 4096, Medium::pm);
      region->store(0, node + 1);
      co_await barrier->arrive_and_wait();
      EXPECT_EQ(region->load(0), node + 1);
      co_await barrier->arrive_and_wait();
    });
  }
  platform->run();
}

TEST_P(PmemRegion, SurvivesTheThreadsOfARun) {
  const auto platform = make({.node_count = 1});
  on_one_thread(*platform, mode(), [](Thread& thread) {
    const auto region = thread.node.create_region("kept", 4096, Medium::pm);
    region->store(0, 5);
    region->persist(0, 8);
  });
  on_one_thread(*platform, mode(), [](Thread& thread) {
    const auto region = thread.node.open_region("kept");
    EXPECT_NE(region, nullptr);
    if (region == nullptr) return;
    EXPECT_EQ(region->load(0), 5U);
  });
}

}  // namespace perdura::conformance
