// Client and server of RemoteLog as real processes on shared memory, killed by SIGKILL again and
// again: no acknowledged record is lost, none is torn, none is out of order.
#include <atomic>
#include <chrono>
#include <random>

#include "platform/error.h"
#include "tests/bench/log/support.h"
#include "tests/systems/kill/processes.h"

namespace perdura::bench::test {
namespace {

using systems::test::Processes;
using systems::test::SharedMemory;

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
        processes_("remote-log-" + method, {}),
        options_(options_of(persistence::find_method(method), pmem::Medium::pm, 64)) {}

  Shared& shared() { return *shared_; }
  void kill_process(pid_t process) { processes_.kill_process(process); }

  pid_t start_server() {
    return processes_.start(0, [this](Thread& thread) -> Task<> {
      Shared& shared = *shared_;
      LogServer server(thread, "log", options_, [&](std::uint64_t number, auto payload) {
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
        std::unique_ptr<RemoteLog> log;
        try {
          log = co_await RemoteLog::connect(thread, {0, 0}, options_);
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
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    const auto reaches = [&](const std::atomic<std::uint64_t>& count, std::uint64_t goal) {
      while (count < goal) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        sched_yield();
      }
      return true;
    };
    if (!reaches(shared_->connections, connections)) return false;
    const std::uint64_t goal = shared_->acknowledged + records;
    return reaches(shared_->acknowledged, goal) && reaches(shared_->applied, goal);
  }

 private:
  SharedMemory memory_{sizeof(Shared)};
  Shared* shared_;
  Processes processes_;
  LogOptions options_;
};

class KillOfTheLog : public testing::TestWithParam<const char*> {};
std::string plain_name(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Methods, KillOfTheLog,
                         testing::Values("write-flush", "write-imm-message", "send-flush",
                                         "ordered-write-flush", "ordered-write-imm-flush",
                                         "ordered-send-flush", "ordered-send-copy-flush"),
                         plain_name);

TEST_P(KillOfTheLog, EndsTheClientAgainAndAgain) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  Cluster cluster(GetParam());
  cluster.start_server();
  for (std::uint64_t i = 1; i <= 15; ++i) {
    const pid_t client = cluster.start_client();
    ASSERT_TRUE(cluster.progress(i, 50 + random() % 300)) << "after kill " << i;
    cluster.kill_process(client);
  }
  EXPECT_EQ(cluster.shared().wrong, 0U);
}

TEST_P(KillOfTheLog, EndsTheServerAgainAndAgain) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  Cluster cluster(GetParam());
  cluster.start_client();
  for (std::uint64_t i = 1; i <= 15; ++i) {
    const pid_t server = cluster.start_server();
    ASSERT_TRUE(cluster.progress(i, 50 + random() % 300)) << "after kill " << i;
    cluster.kill_process(server);
  }
  EXPECT_EQ(cluster.shared().wrong, 0U);
}

}  // namespace
}  // namespace perdura::bench::test
