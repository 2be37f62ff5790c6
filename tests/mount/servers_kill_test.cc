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
constexpr int kKillsOfStores = 20;
constexpr int kHundreds = 300;
constexpr double kPatience = 30;  // seconds, for a call and for a server to come back
// A kill comes after at most so many calls of all writers together, and the next one when each writer
// has done so many again.
constexpr std::uint64_t kMostCalls = 400;
constexpr std::uint64_t kCallsToBeUsable = 20;
constexpr double kWhileAway = 1.5;  // seconds, for which calls may go on without a server

enum class Victim { mds, mirror, left, right, a, b, writer };
constexpr std::array<const char*, 7> kVictims{"mds", "mirror", "left", "right", "a", "b", "writer"};

const std::vector<Victim> kAll{Victim::mds, Victim::mirror, Victim::left,  Victim::right,
                               Victim::a,   Victim::b,      Victim::writer};

const char* name_of(Victim victim) { return kVictims.at(static_cast<std::size_t>(victim)); }

// By platform.
class ServersKillTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
    mounts_ =
        std::make_unique<TwoMounts>(MountedCluster{.platform = GetParam(),
                                                   .parameters = "takeover_after_us = 200_000",
                                                   .has_mirror = true,
                                                   .stores = 2});
    std::ofstream(mounts_->a() / "log").close();
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

  // Each of the mounts uses the memory of one of the stores from now on.
  void make_internal() {
    are_internal_ = true;
    for (const auto& directory : {mounts_->a(), mounts_->b()}) {
      EXPECT_EQ(mounts_->unmount(directory), 0);
      mount(directory);
    }
  }
  void mount(const std::filesystem::path& directory) {
    std::vector<std::string> options;
    if (are_internal_)
      options.emplace_back(directory == mounts_->a() ? "--store=left" : "--store=right");
    mounts_->mount(directory, options);
  }

  static bool contains(const std::vector<Victim>& victims, Victim one) {
    return std::find(victims.begin(), victims.end(), one) != victims.end();
  }

  void kill_all_of(const std::vector<Victim>& victims) {
    for (const Victim victim : victims) {
      if (victim == Victim::writer) {
        ::kill(writers_.at(killed_writer_), SIGKILL);
        record_->writers.at(killed_writer_).since = 0;
      } else if (victim == Victim::a || victim == Victim::b) {
        mounts_->kill(victim == Victim::a ? mounts_->a() : mounts_->b());
      } else {
        EXPECT_EQ(mounts_->end_server(name_of(victim), SIGKILL), 128 + SIGKILL);
      }
    }
  }
  void start_all_of(const std::vector<Victim>& victims) {
    std::vector<std::string> servers;
    for (const Victim victim : victims) {
      if (victim < Victim::a) servers.emplace_back(name_of(victim));
    }
    mounts_->serve(servers);
    if (contains(victims, Victim::a)) mount(mounts_->a());
    if (contains(victims, Victim::b)) mount(mounts_->b());
    if (!contains(victims, Victim::writer)) return;
    // It ends when the call under way does, which may need one of the servers.
    end_of_writer(killed_writer_);
    start_writer(killed_writer_);
  }

  // Kills them, lets others go on without them, if they can, and starts them again; perhaps several
  // times, so that they are killed while they recover.
  void kill_and_start(const std::vector<Victim>& victims) {
    std::vector<Excuse*> excuses;
    const bool is_metadata = contains(victims, Victim::mds) || contains(victims, Victim::mirror);
    if (is_metadata) excuses.push_back(&record_->servers);
    if (contains(victims, Victim::a)) excuses.push_back(&record_->mounts[0]);
    if (contains(victims, Victim::b)) excuses.push_back(&record_->mounts[1]);
    for (Excuse* const excuse : excuses) ++*excuse;
    killed_writer_ = random_() % kLoadWriters;
    do {
      kill_all_of(victims);
      if (random_() % 2 == 0) await_calls(kWhileAway, random_() % kMostCalls);
      start_all_of(victims);
    } while (random_() % 4 == 0);
    for (Excuse* const excuse : excuses) {
      if (excuse != &record_->servers) ++*excuse;
    }
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

  // In each round one of them is killed, or up to `most` at a time.
  void kill_in_rounds(int rounds, std::size_t most, std::uint32_t seed,
                      const std::vector<Victim>& among = kAll) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    random_.seed(seed);
    for (std::size_t i = 0; i < kLoadWriters; ++i) start_writer(i);
    LogReader log(*record_);
    std::map<std::string, int> counts;
    std::vector<Victim> next;
    for (int round = 1; round <= rounds && !HasFailure(); ++round) {
      std::vector<Victim> victims;
      std::string names;
      for (std::size_t count = 1 + random_() % most; count > 0; --count) {
        if (next.empty()) {
          next = among;
          std::shuffle(next.begin(), next.end(), random_);
        }
        if (contains(victims, next.back())) break;
        victims.push_back(next.back());
        next.pop_back();
        names += fmt::format(" {}", name_of(victims.back()));
        ++counts[name_of(victims.back())];
      }
      SCOPED_TRACE(fmt::format("round {}:{}", round, names));
      fmt::print("{}{}\n", round, names);
      std::fflush(stdout);
      ASSERT_TRUE(await_calls(kPatience, random_() % kMostCalls)) << why_;
      kill_and_start(victims);
      ASSERT_TRUE(await_usable()) << why_;
      ASSERT_EQ(check(log), "");
    }
    for (const auto& [name, count] : counts) fmt::print("{} times {} was killed\n", count, name);
    end_all();
  }

  std::shared_ptr<LoadRecord> record_ = make_load_record();
  std::unique_ptr<TwoMounts> mounts_;
  std::array<pid_t, kLoadWriters> writers_{};
  std::mt19937_64 random_{0};
  std::string why_;
  std::size_t killed_writer_ = 0;
  bool are_internal_ = false;
};

INSTANTIATE_TEST_SUITE_P(Platforms, ServersKillTest, testing::ValuesIn(kPlatformsOfOneHost),
                         [](const auto& of) { return of.param; });

TEST_P(ServersKillTest, LosesNothingThatHasReturned) { kill_in_rounds(kKills, 1, 1); }

// A mount reads the store of its host without asking anybody, so it would read pages that the store
// has missed.
TEST_P(ServersKillTest, StoresOfInternalClientsComeBackWithEverything) {
  make_internal();
  kill_in_rounds(kKillsOfStores, 1, 1, {Victim::left, Victim::right});
}

int rounds_of_soak() {
  const char* const given = std::getenv("PERDURA_FS_SERVER_KILLS");
  return given == nullptr ? kHundreds : std::atoi(given);
}

TEST_P(ServersKillTest, LosesNothingInHundredsOfKills) {
  kill_in_rounds(rounds_of_soak(), 1, random_seed());
}

TEST_P(ServersKillTest, LosesNothingInHundredsOfKillsOfSeveral) {
  kill_in_rounds(rounds_of_soak(), 3, random_seed());
}

TEST_P(ServersKillTest, LosesNothingInHundredsOfKillsWithInternalClients) {
  make_internal();
  kill_in_rounds(rounds_of_soak(), 2, random_seed());
}

}  // namespace
}  // namespace perdura::test
