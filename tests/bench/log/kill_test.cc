// Client and server of RemoteLog as real processes on shared memory, killed by SIGKILL again and
// again: no acknowledged record is lost, none is torn, none is out of order.
#include <atomic>

#include "platform/base/error.h"
#include "tests/bench/log/support.h"
#include "tests/support/kill_loop.h"
#include "tests/support/wait_until.h"

namespace perdura::bench::test {
namespace {

using perdura::test::KillTest;
using perdura::test::plain_name;
using perdura::test::Processes;
using perdura::test::SharedMemory;
using perdura::test::StepsBeforeKill;
using perdura::test::wait_until;

constexpr StepsBeforeKill kSteps{50, 350};

struct Shared {
  std::atomic<std::uint64_t> acknowledged{0};
  std::atomic<std::uint64_t> applied{0};
  std::atomic<std::uint64_t> connections{0};
  std::atomic<std::uint64_t> wrong{0};
};

class Cluster {
 public:
  explicit Cluster(const std::string& method)
      : shared_(new (memory_.bytes().data()) Shared),
        processes_("remote-log-kill-" + method),
        options_(options_of(methods::find_method(method), pmem::Medium::pm, 64)) {}

  Shared& shared() { return *shared_; }
  Processes& processes() { return processes_; }

  pid_t start_server() {
    return processes_.start(0, [this](Thread& thread) -> Task<> {
      Shared& shared = *shared_;
      systems::remote_log::LogServer server(
          thread, "log", options_, [&](std::uint64_t number, auto payload) {
            if (number > shared.applied + 1 || !is_payload_of(number, payload)) ++shared.wrong;
            if (number > shared.applied) shared.applied = number;
          });
      thread.executor.spawn(server.collect(Microseconds(20)));
      co_await server.serve();
    });
  }
  pid_t start_client() {
    return processes_.start(1, [this](Thread& thread) -> Task<> {
      Shared& shared = *shared_;
      for (;;) {
        std::unique_ptr<systems::remote_log::RemoteLog> log;
        try {
          log = co_await systems::remote_log::RemoteLog::connect(thread, {0, 0}, options_);
        } catch (const PlatformError&) {
          continue;
        }
        if (log->tail() < shared.acknowledged) ++shared.wrong;
        ++shared.connections;
        for (;;) {
          const auto payload = payload_of(log->tail() + 1);
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
  systems::remote_log::LogOptions options_;
};

class KillOfTheLog : public KillTest<const char*> {};
INSTANTIATE_TEST_SUITE_P(Methods, KillOfTheLog,
                         testing::Values("write-flush", "write-imm-message", "send-flush",
                                         "ordered-write-flush", "ordered-write-imm-flush",
                                         "ordered-send-flush", "ordered-send-copy-flush"),
                         plain_name<const char*>);

TEST_P(KillOfTheLog, EndsTheClientAgainAndAgain) {
  Cluster cluster(GetParam());
  cluster.start_server();
  ASSERT_NO_FATAL_FAILURE(kill_again_and_again(
      cluster.processes(), 8, kSteps, [&] { return cluster.start_client(); },
      [&](auto round, auto records) { return cluster.progress(round, records); }));
  EXPECT_EQ(cluster.shared().wrong, 0U);
}

TEST_P(KillOfTheLog, EndsTheServerAgainAndAgain) {
  Cluster cluster(GetParam());
  cluster.start_client();
  ASSERT_NO_FATAL_FAILURE(kill_again_and_again(
      cluster.processes(), 8, kSteps, [&] { return cluster.start_server(); },
      [&](auto round, auto records) { return cluster.progress(round, records); }));
  EXPECT_EQ(cluster.shared().wrong, 0U);
}

}  // namespace
}  // namespace perdura::bench::test
