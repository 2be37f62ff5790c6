// The servers of a file system over a cluster, its mounts, and the programs that use them are killed at
// random, while programs on two mounts write and read: whatever calls have done is there afterwards,
// no call fails without a cause, and none hangs.
//
//   PERDURA_FS_SERVER_KILLS=500 build/.../perdura_mount_test --gtest_filter='ServersKill*Hundreds'
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/mount/mounted.h"
#include "tests/mount/shared_load.h"
#include "tests/mount/two_mounts.h"
#include "tests/support/seed.h"

namespace perdura::test {
namespace {

constexpr int kKills = 7;
constexpr int kHundreds = 300;
constexpr double kPatience = 30;              // seconds, for a call and for a server to come back
constexpr std::uint64_t kMostCalls = 400;     // of all writers between two kills
constexpr std::uint64_t kCallsToBeUsable = 20;  // of each writer
constexpr double kWhileAway = 1.5;            // seconds, for which calls may go on without a server

enum class Victim { mds, mirror, left, right, a, b, writer };
constexpr std::array<const char*, 7> kVictims{"mds", "mirror", "left", "right", "a", "b", "writer"};

class ServersKillTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
    mounts_ = std::make_unique<TwoMounts>("orion", "takeover_after_us = 200_000", 64 * MiB, true, 2);
    std::ofstream(mounts_->a() / "log").close();
    for (std::size_t i = 0; i < kLoadWriters; ++i) start_writer(i);
  }
  void TearDown() override {
    for (std::size_t i = 0; i < kLoadWriters; ++i) {
      if (writers_.at(i) != 0) ::kill(writers_.at(i), SIGKILL);
    }
    mounts_.reset();
    for (std::size_t i = 0; i < kLoadWriters; ++i) {
      if (writers_.at(i) != 0) end_of_writer(i);
    }
  }

  void start_writer(std::size_t number) {
    record_->writers.at(number).since = 0;
    const auto seed = static_cast<std::uint32_t>(random_());
    const pid_t process = fork();
    if (process == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      int result = 1;
      try {
        result = LoadWriter(*record_, {mounts_->a(), mounts_->b()}, number, seed).run();
      } catch (const std::exception& error) {
        record_->note(error.what());
      }
      _exit(result);
    }
    writers_.at(number) = process;
  }
  int end_of_writer(std::size_t number) {
    int status = 0;
    while (waitpid(std::exchange(writers_.at(number), 0), &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }

  std::string wrong() const { return record_->wrong.data(); }

  // Waits until the condition holds. Returns false, with the reason in why_, if something is wrong
  // before, or it takes longer than `patience`.
  bool await(double patience, const auto& condition) {
    const auto begun = std::chrono::steady_clock::now();
    why_.clear();
    while (!condition()) {
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun;
      if (record_->is_wrong) why_ = wrong();
      if (const double longest = longest_call(*record_); longest > kPatience) {
        why_ = fmt::format("a call takes {:.1f} s", longest);
      }
      if (const auto ended = mounts_->ended()) why_ = *ended + " has ended by itself";
      if (why_.empty() && taken.count() > patience) why_ = "takes too long";
      if (!why_.empty()) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    return true;
  }
  // The writers together, since some may be on a mount that is away.
  bool await_calls(double patience, std::uint64_t calls) {
    const std::uint64_t until = record_->calls() + calls;
    return await(patience, [&] { return record_->calls() >= until; });
  }
  bool await_usable() {
    std::array<std::uint64_t, kLoadWriters> until{};
    for (std::size_t i = 0; i < kLoadWriters; ++i) {
      until.at(i) = record_->writers.at(i).calls + kCallsToBeUsable;
    }
    return await(kPatience, [&] {
      for (std::size_t i = 0; i < kLoadWriters; ++i) {
        if (record_->writers.at(i).calls < until.at(i)) return false;
      }
      return true;
    });
  }

  // Kills it, and lets others go on without it, if they can.
  void kill_and_start(Victim victim) {
    const bool at_once = random_() % 2 == 0;
    const auto away = [&] {
      if (!at_once) await_calls(kWhileAway, random_() % kMostCalls);
    };
    const std::string name = kVictims.at(static_cast<std::size_t>(victim));
    if (victim == Victim::writer) {
      const std::size_t number = random_() % kLoadWriters;
      ::kill(writers_.at(number), SIGKILL);
      end_of_writer(number);
      away();
      return start_writer(number);
    }
    if (victim == Victim::a || victim == Victim::b) {
      Excuse& excuse = record_->mounts.at(victim == Victim::a ? 0 : 1);
      const auto& directory = victim == Victim::a ? mounts_->a() : mounts_->b();
      ++excuse;
      mounts_->kill(directory);
      away();
      mounts_->mount(directory);
      ++excuse;
      return;
    }
    const bool is_metadata = victim == Victim::mds || victim == Victim::mirror;
    if (is_metadata) ++record_->servers;
    EXPECT_EQ(mounts_->end_server(name, SIGKILL), 128 + SIGKILL);
    away();
    mounts_->serve({name});
    if (is_metadata) {
      await_usable();
      ++record_->servers;
    }
  }

  std::string check(LogReader& log) {
    for (const auto& mount : {mounts_->a(), mounts_->b()}) {
      if (std::string text = check_files(*record_, mount); !text.empty()) return text;
    }
    return log.check(random_() % 2 == 0 ? mounts_->a() : mounts_->b());
  }

  void end_all() {
    record_->stops = true;
    for (std::size_t i = 0; i < kLoadWriters; ++i) EXPECT_EQ(end_of_writer(i), 0) << wrong();
    EXPECT_EQ(mounts_->unmount(mounts_->a()), 0);
    EXPECT_EQ(mounts_->unmount(mounts_->b()), 0);
    const std::vector<std::string> servers = mounts_->servers();
    for (const std::string& name : servers) EXPECT_EQ(mounts_->end_server(name), 0) << name;
    mounts_->serve(servers);
    mounts_->mount(mounts_->a());
    mounts_->mount(mounts_->b());
    LogReader whole(*record_);
    EXPECT_EQ(check(whole), "");
  }

  void kill_all(int kills, std::uint32_t seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    random_.seed(seed);
    LogReader log(*record_);
    std::map<std::string, int> counts;
    std::vector<std::size_t> next;
    for (int round = 1; round <= kills && !HasFailure(); ++round) {
      if (next.empty()) {
        next.resize(kVictims.size());
        std::iota(next.begin(), next.end(), 0);
        std::shuffle(next.begin(), next.end(), random_);
      }
      const auto victim = static_cast<Victim>(next.back());
      next.pop_back();
      const std::string name = kVictims.at(static_cast<std::size_t>(victim));
      SCOPED_TRACE(fmt::format("kill {}, {}", round, name));
      fmt::print("{} {}\n", round, name);
      std::fflush(stdout);
      ASSERT_TRUE(await_calls(kPatience, random_() % kMostCalls)) << why_;
      kill_and_start(victim);
      ASSERT_TRUE(await_usable()) << why_;
      ASSERT_EQ(check(log), "");
      ++counts[name];
    }
    for (const auto& [name, count] : counts) fmt::print("{} times {} was killed\n", count, name);
    end_all();
  }

  std::shared_ptr<LoadRecord> record_ = make_load_record();
  std::unique_ptr<TwoMounts> mounts_;
  std::array<pid_t, kLoadWriters> writers_{};
  std::mt19937_64 random_{0};
  std::string why_;
};

TEST_F(ServersKillTest, LosesNothingThatHasReturned) { kill_all(kKills, 1); }

TEST_F(ServersKillTest, LosesNothingInHundredsOfKills) {
  const char* const given = std::getenv("PERDURA_FS_SERVER_KILLS");
  kill_all(given == nullptr ? kHundreds : std::atoi(given), random_seed());
}

}  // namespace
}  // namespace perdura::test
