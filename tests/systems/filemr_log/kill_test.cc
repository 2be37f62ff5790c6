// Client and server of the log of FileMR as real processes, killed by SIGKILL again and again: no
// acknowledged record is lost, none is torn, none is out of order. Every other record is so long
// that a client is often killed in the middle of its APPEND, on shared memory with the
// registration's lock.
#include <atomic>

#include "platform/base/error.h"
#include "systems/filemr_log/client.h"
#include "systems/filemr_log/server.h"
#include "tests/support/kill_loop.h"
#include "tests/support/wait_until.h"

namespace perdura::systems::filemr_log {
namespace {

using test::KillTest;
using test::Processes;
using test::SharedMemory;
using test::StepsBeforeKill;
using test::wait_until;

// A round laps the room several times.
constexpr StepsBeforeKill kSteps{20, 200};
constexpr std::uint64_t kKills = 12;
constexpr std::uint32_t kLargestRecord = 64 * KiB;
constexpr Bytes kRoomForRecords = 10 * kLargestRecord;

std::vector<std::byte> record(std::uint64_t number) {
  const Bytes least = number % 2 == 0 ? kLargestRecord - 90 : 0;
  std::vector<std::byte> payload(least + number * 31 % 91);
  for (std::size_t i = 0; i < payload.size(); ++i) {
    payload[i] = static_cast<std::byte>(number * 113 + i * 5 + 3);
  }
  return payload;
}

struct Shared {
  std::atomic<std::uint64_t> acknowledged{0};
  std::atomic<std::uint64_t> applied{0};
  std::atomic<std::uint64_t> connections{0};
  std::atomic<std::uint64_t> wrong{0};
};

struct KillCase {
  Processes::Over over;
  Persistence persistence;
};

class Cluster {
 public:
  explicit Cluster(const KillCase& each)
      : shared_(new (memory_.bytes().data()) Shared),
        processes_("filemr-log-kill", each.over),
        options_{.room = kRoomForRecords,
                 .largest_payload = kLargestRecord,
                 .persistence = each.persistence} {}

  Shared& shared() { return *shared_; }
  Processes& processes() { return processes_; }

  pid_t start_server() {
    return processes_.start(0, [this](Thread& thread) -> Task<> {
      Shared& shared = *shared_;
      const auto apply = [&](std::uint64_t number, std::span<const std::byte> payload) {
        const bool is_right = std::ranges::equal(payload, record(number));
        if (number > shared.applied + 1 || !is_right) ++shared.wrong;
        if (number > shared.applied) shared.applied = number;
      };
      co_await std::make_shared<LogServer>(thread, "log", options_, apply)->serve(Milliseconds(1));
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
        }
        if (log == nullptr) {
          co_await sleep_for(Microseconds(100));
          continue;
        }
        if (log->tail() < shared.acknowledged) ++shared.wrong;
        ++shared.connections;
        for (;;) {
          const auto payload = record(log->tail() + 1);
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
  const Options options_;
};

std::vector<KillCase> kill_cases() {
  std::vector<KillCase> cases;
  for (const auto over : {Processes::Over::shared_memory, Processes::Over::sockets}) {
    for (const auto each : {Persistence::none, Persistence::flush, Persistence::message}) {
      cases.push_back({over, each});
    }
    // Connections over TCP have no commits.
    if (over == Processes::Over::shared_memory) cases.push_back({over, Persistence::commit});
  }
  return cases;
}

std::string kill_case_name(const testing::TestParamInfo<KillCase>& info) {
  constexpr std::string_view kNames[] = {"none", "flush", "message", "commit"};
  return std::string(info.param.over == Processes::Over::sockets ? "sockets_" : "shm_") +
         std::string(kNames[static_cast<std::size_t>(info.param.persistence)]);
}

class KillOfTheFileMrLog : public KillTest<KillCase> {};
INSTANTIATE_TEST_SUITE_P(All, KillOfTheFileMrLog, testing::ValuesIn(kill_cases()), kill_case_name);

TEST_P(KillOfTheFileMrLog, EndsTheClientAgainAndAgain) {
  Cluster cluster(GetParam());
  cluster.start_server();
  ASSERT_NO_FATAL_FAILURE(kill_again_and_again(
      cluster.processes(), kKills, kSteps, [&] { return cluster.start_client(); },
      [&](auto round, auto records) { return cluster.progress(round, records); }));
  EXPECT_EQ(cluster.shared().wrong, 0U);
}

TEST_P(KillOfTheFileMrLog, EndsTheServerAgainAndAgain) {
  Cluster cluster(GetParam());
  cluster.start_client();
  ASSERT_NO_FATAL_FAILURE(kill_again_and_again(
      cluster.processes(), kKills, kSteps, [&] { return cluster.start_server(); },
      [&](auto round, auto records) { return cluster.progress(round, records); }));
  EXPECT_EQ(cluster.shared().wrong, 0U);
}

}  // namespace
}  // namespace perdura::systems::filemr_log
