// The ends of processes of active data objects and of their shards.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <fstream>

#include "platform/base/error.h"
#include "platform/pmem/mapped/mapping.h"
#include "tests/platform/shm/process.h"
#include "tests/systems/mcas/ado/isolation/shard.h"

namespace perdura::systems::mcas::ado {
namespace {

using namespace test;
using pmem::mapped::File;

LaunchOptions usual() {
  LaunchOptions options;
  if (!can_isolate()) options.limits.isolation = Isolation::none;
  return options;
}

TEST(AdoDeath, AProcessThatLoopsIsEndedAndGoneBehindTheEnd) {
  run_shard([&](Thread& thread, ShmPlatform&) -> Task<> {
    TwoPools pools(thread, usual());
    for (int time = 0; time < 5; ++time) {
      co_await pools.start(PERDURA_HOSTILE_PLUGIN);
      const pid_t number = std::stoi(co_await pools.ask("number"));
      std::string looped;
      const auto loop = [](TwoPools& on, std::string& answer) -> Task<> {
        answer = co_await on.ask("loop");
      };
      Executor::current().spawn(loop(pools, looped));
      co_await yield();
      EXPECT_EQ(::kill(number, 0), 0);
      pools.launched().end();
      EXPECT_EQ(::kill(number, 0), -1) << "it is gone, and nobody has to wait for it";
      while (looped.empty()) co_await sleep_for(Microseconds(50));
      EXPECT_EQ(looped, "lost");
      pools.launched().end();
    }
  });
}

TEST(AdoDeath, AProcessThatNeverBeginsIsEnded) {
  run_shard([&](Thread& thread, ShmPlatform&) -> Task<> {
    LaunchOptions options = usual();
    options.limits.start = Milliseconds(50);
    TwoPools pools(thread, options);
    std::string problem;
    try {
      co_await pools.start(std::string(PERDURA_HOSTILE_PLUGIN) + ":loop");
    } catch (const PlatformError& error) {
      problem = error.what();
    }
    EXPECT_NE(problem.find("is not ready after 50 ms, and was ended"), std::string::npos)
        << problem;
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "it is gone, and nobody has to wait for it";
  });
}

TEST(AdoDeath, AProcessThatIsKilledIsNoticed) {
  run_shard([&](Thread& thread, ShmPlatform&) -> Task<> {
    TwoPools pools(thread, usual());
    co_await pools.start(PERDURA_HOSTILE_PLUGIN);
    const pid_t number = std::stoi(co_await pools.ask("number"));
    ::kill(number, SIGKILL);
    EXPECT_EQ(co_await pools.ask("loop"), "lost");
    co_await pools.start(PERDURA_HOSTILE_PLUGIN);
    EXPECT_EQ(co_await pools.ask("count"), "1");
  });
}

// Also one that never looks at its shard.
TEST(AdoDeath, AProcessEndsWithItsShard) {
  for (const char* last : {"count", "loop"}) {
    const shm_test::TemporaryDirectory directory;
    const std::string told = directory.path() + "/number";
    shm_test::Process shard([&](const shm_test::Process::Voice& voice) {
      run_shard([&](Thread& thread, ShmPlatform&) -> Task<> {
        TwoPools pools(thread, usual());
        co_await pools.start(PERDURA_HOSTILE_PLUGIN);
        std::ofstream(told) << co_await pools.ask("number");
        voice.say('n');
        for (;;) co_await pools.ask(last);
      });
    });
    ASSERT_TRUE(shard.hears('n'));
    pid_t number = 0;
    std::ifstream(told) >> number;
    ASSERT_GT(number, 0);
    const File process(static_cast<int>(::syscall(SYS_pidfd_open, number, 0)));
    ASSERT_TRUE(process);
    shard.kill();
    pollfd end{process.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&end, 1, 20'000), 1) << "it lives";
  }
}

}  // namespace
}  // namespace perdura::systems::mcas::ado
