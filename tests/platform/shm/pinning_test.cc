// Threads run on the cores that their node was given, and on no others.
#include <gtest/gtest.h>
#include <sched.h>

#include <set>

#include "platform/base/error.h"
#include "platform/shm/shm_platform.h"

namespace perdura::shm_test {
namespace {

using Cores = std::set<unsigned>;

Cores of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  Cores cores;
  for (unsigned core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.insert(core);
  }
  return cores;
}

TEST(ShmPinning, ThreadsTakeTheirNodesCoresInTurnAndBackgroundThreadsAll) {
  const Cores all = of_this_thread();
  const unsigned first = *all.begin();
  const unsigned last = *all.rbegin();
  ShmOptions options;
  options.node_count = 2;
  options.placements = {{.cores = {last, first}, .numa_node = {}}};
  ShmPlatform platform(std::move(options));
  std::vector<Cores> of_server(3);
  Cores of_background;
  Cores of_client;
  for (std::uint16_t index = 0; index < of_server.size(); ++index) {
    platform.start(0, index, CompletionMode::event,
                   [index, &of_server, &of_background](Thread& thread) -> Task<> {
                     of_server[index] = of_this_thread();
                     if (index != 0) co_return;
                     const auto background = thread.node.start_background_thread();
                     const auto look = [](Cores* cores) -> Task<> {
                       *cores = of_this_thread();
                       co_return;
                     };
                     co_await background->run(look(&of_background));
                   });
  }
  platform.start(1, 0, CompletionMode::event, [&of_client](Thread&) -> Task<> {
    of_client = of_this_thread();
    co_return;
  });
  platform.run();
  EXPECT_EQ(of_server, (std::vector<Cores>{{last}, {first}, {last}}));
  EXPECT_EQ(of_background, (Cores{first, last}));
  EXPECT_EQ(of_client, all) << "it was given none";
  EXPECT_EQ(of_this_thread(), all);
}

TEST(ShmPinning, ACoreThatCannotBeUsedEndsTheRun) {
  ShmOptions options;
  options.placements = {{.cores = {CPU_SETSIZE}, .numa_node = {}}};
  ShmPlatform platform(std::move(options));
  platform.start(0, 0, CompletionMode::event, [](Thread&) -> Task<> { co_return; });
  EXPECT_THROW(platform.run(), UsageError);
}

}  // namespace
}  // namespace perdura::shm_test
