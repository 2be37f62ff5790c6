// Memory is where its node was told: asked of the kernel, on the one NUMA node that every machine
// has.
#include "platform/host/numa.h"

#include <gtest/gtest.h>

#include <thread>

#include "platform/base/error.h"
#include "platform/shm/shm_platform.h"

namespace perdura::shm_test {
namespace {

using NumaNode = std::optional<unsigned>;

constexpr NumaNode kAnywhere = std::nullopt;
constexpr unsigned kMissing = 1023;

TEST(ShmNuma, ABindingEndsWithItsScopeAndHoldsForThreadsStartedInIt) {
  NumaNode of_thread;
  {
    const MemoryBinding binding(0);
    EXPECT_EQ(memory_binding(), 0U);
    {
      const MemoryBinding none(kAnywhere);
      EXPECT_EQ(memory_binding(), 0U);
      const MemoryBinding again(0);
    }
    EXPECT_EQ(memory_binding(), 0U);
    std::thread([&of_thread] { of_thread = memory_binding(); }).join();
  }
  EXPECT_EQ(of_thread, 0U);
  EXPECT_EQ(memory_binding(), kAnywhere);
}

TEST(ShmNuma, ANodeThatIsNotThereIsRefused) {
  EXPECT_THROW(MemoryBinding binding(kMissing), UsageError);
  EXPECT_EQ(memory_binding(), kAnywhere);
  ShmOptions options;
  options.placements = {{.cores = {}, .numa_node = kMissing}};
  ShmPlatform platform(std::move(options));
  EXPECT_THROW(platform.local_node(0)->create_region("x", 4096, pmem::Medium::pm), UsageError);
  platform.start(0, 0, CompletionMode::event, [](Thread&) -> Task<> { co_return; });
  EXPECT_THROW(platform.run(), UsageError);
}

struct Seen {
  NumaNode thread;
  NumaNode background;
  NumaNode pm;
  NumaNode dram;

  bool operator==(const Seen&) const = default;
};

Task<> look(NumaNode* binding) {
  *binding = memory_binding();
  co_return;
}

Task<> look_around(Thread& thread, Seen* seen) {
  co_await look(&seen->thread);
  const auto background = thread.node.start_background_thread();
  co_await background->run(look(&seen->background));
}

TEST(ShmNuma, RegionsAndThreadsOfANodeAreOnItsNumaNode) {
  ShmOptions options;
  options.node_count = 2;
  options.placements = {{.cores = {}, .numa_node = 0}};
  ShmPlatform platform(std::move(options));
  std::vector<Seen> seen(2);
  std::vector<std::unique_ptr<pmem::Region>> regions;
  for (NodeId id = 0; id < 2; ++id) {
    const auto bound_region = [&](pmem::Medium medium) {
      Node& node = *platform.local_node(id);
      regions.push_back(node.create_region("x", 1 << 20, medium));
      return memory_binding_at(regions.back()->data());
    };
    seen[id].pm = bound_region(pmem::Medium::pm);
    seen[id].dram = bound_region(pmem::Medium::dram);
    platform.start(id, 0, CompletionMode::event, [&seen, id](Thread& thread) -> Task<> {
      return look_around(thread, &seen[id]);
    });
  }
  platform.run();
  EXPECT_EQ(seen[0], (Seen{0, 0, 0, 0}));
  EXPECT_EQ(seen[1], Seen{}) << "it was given none";
  EXPECT_EQ(memory_binding(), kAnywhere);
}

}  // namespace
}  // namespace perdura::shm_test
