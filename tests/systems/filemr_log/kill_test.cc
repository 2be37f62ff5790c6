// Client and server of FileMR's log as real processes on shared memory, killed by SIGKILL again and
// again: no acknowledged record is lost, none is torn, none is out of order. Records are long, so
// that a client is usually killed in the middle of an APPEND, with the registration's lock.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "methods/remote_persister.h"
#include "platform/base/error.h"
#include "systems/filemr_log/client.h"
#include "systems/filemr_log/server.h"
#include "tests/support/kill_loop.h"
#include "tests/support/wait_until.h"

namespace perdura::systems::filemr_log {
namespace {

using test::KillTest;
using test::plain_name;
using test::Processes;
using test::SharedMemory;
using test::StepsBeforeKill;
using test::wait_until;

constexpr StepsBeforeKill kSteps{20, 120};
constexpr std::uint32_t kLongest = 64 * KiB;

std::vector<std::byte> long_payload(std::uint64_t number) {
  std::vector<std::byte> payload(kLongest - number % 17 * 100);
  for (std::size_t i = 0; i < payload.size(); ++i) {
    payload[i] = static_cast<std::byte>(number * 131 + i * 7 + 1);
  }
  return payload;
}

struct Shared {
  std::atomic<std::uint64_t> acknowledged{0};
  std::atomic<std::uint64_t> applied{0};
  std::atomic<std::uint64_t> connections{0};
  std::atomic<std::uint64_t> wrong{0};
};

class Cluster {
 public:
  Cluster(const std::string& name, Persistence persistence)
      : shared_(new (memory_.bytes().data()) Shared),
        processes_("filemr-log-kill-" + name),
        options_{.room = 20 * record_size(kLongest),
                 .largest_payload = kLongest,
                 .persistence = persistence} {}

  Shared& shared() { return *shared_; }
  Processes& processes() { return processes_; }

  pid_t start_server() {
    return processes_.start(0, [this](Thread& thread) -> Task<> {
      Shared& shared = *shared_;
      co_await std::make_shared<LogServer>(
          thread, "log", options_,
          [&shared](std::uint64_t number, std::span<const std::byte> payload) {
            const bool is_right = std::ranges::equal(payload, long_payload(number));
            if (number > shared.applied + 1 || !is_right) ++shared.wrong;
            if (number > shared.applied) shared.applied = number;
          })
          ->serve(Microseconds(20));
    });
  }
  pid_t start_client() {
    return processes_.start(1, [this](Thread& thread) -> Task<> {
      Shared& shared = *shared_;
      for (;;) {
        std::unique_ptr<LogClient> log;
        try {
          log = co_await LogClient::connect(thread, {0, 0}, options_);
        } catch (const PlatformError&) {
          continue;
        }
        if (log->tail().number < shared.acknowledged) ++shared.wrong;
        ++shared.connections;
        for (;;) {
          const auto payload = long_payload(log->tail().number + 1);
          const auto appended = co_await log->append(payload);
          if (!appended) break;
          shared.acknowledged = *appended;
        }
      }
    });
  }

  // Waits until the client has connected for the time number `connections`, and then until so many
  // more records have been acknowledged and applied.
  bool progress(std::uint64_t connections, std::uint64_t records) {
    if (!wait_until([&] { return shared_->connections >= connections; })) return false;
    const std::uint64_t goal = shared_->acknowledged + records;
    return wait_until([&] { return shared_->acknowledged >= goal && shared_->applied >= goal; });
  }

 private:
  SharedMemory memory_{sizeof(Shared)};
  Shared* shared_;
  Processes processes_;
  Options options_;
};

class KillOfFileMrLog : public KillTest<const char*> {
 protected:
  Cluster cluster_{GetParam(), std::string_view(GetParam()) == "message" ? Persistence::message
                                                                         : Persistence::flush};
};
INSTANTIATE_TEST_SUITE_P(Persistence, KillOfFileMrLog, testing::Values("flush", "message"),
                         plain_name<const char*>);

TEST_P(KillOfFileMrLog, EndsTheClientAgainAndAgain) {
  cluster_.start_server();
  ASSERT_NO_FATAL_FAILURE(kill_again_and_again(
      cluster_.processes(), 8, kSteps, [&] { return cluster_.start_client(); },
      [&](auto round, auto records) { return cluster_.progress(round, records); }));
  EXPECT_EQ(cluster_.shared().wrong, 0U);
}

TEST_P(KillOfFileMrLog, EndsTheServerAgainAndAgain) {
  cluster_.start_client();
  ASSERT_NO_FATAL_FAILURE(kill_again_and_again(
      cluster_.processes(), 8, kSteps, [&] { return cluster_.start_server(); },
      [&](auto round, auto records) { return cluster_.progress(round, records); }));
  EXPECT_EQ(cluster_.shared().wrong, 0U);
}

}  // namespace
}  // namespace perdura::systems::filemr_log
