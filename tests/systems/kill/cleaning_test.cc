// Erda's server is killed at a random moment in each of many cleanings (section 4.4), while
// clients update ten thousand keys in a store of twice the live data. What they did and were told
// is recorded in memory that survives the server, and is linearizable.
#include <atomic>
#include <chrono>
#include <random>

#include "tests/support/wait_until.h"
#include "tests/systems/erda/support.h"
#include "tests/systems/kill/kv_processes.h"

namespace perdura::systems::test {
namespace {

using perdura::test::wait_until;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kCleanedKeys = 10'000;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kKillsInCleaning = 10;
#else
constexpr int kKillsInCleaning = 40;
#endif
constexpr std::uint64_t kUpdatesPerKill = 10'000;
constexpr std::uint64_t kUpdates = kKillsInCleaning * kUpdatesPerKill;
constexpr std::uint32_t kClients = 2;
// Room in a client's log. The clients go on until the last kill, however often a cleaning was over
// before this process was given a core to see it; memory that is not touched costs nothing.
constexpr std::uint64_t kLogged = 100'000'000;
constexpr Bytes kRegion = 16 * KiB;
constexpr std::uint64_t kRegions = (2 * kCleanedKeys * kObject + kRegion - 1) / kRegion;

struct SharedInCleaning {
  std::atomic<std::uint64_t> updates{0};
  std::atomic<bool> enough{false};      // updates: the clients read all and end
  std::atomic<std::uint64_t> ended{0};  // clients
  std::atomic<std::uint64_t> unexpected{0};
  std::atomic<std::uint32_t> cleanings_now{0};
  std::atomic<std::uint64_t> cleanings{0};  // that the server has ended since it started
};

class CleaningCluster {
 public:
  CleaningCluster() : shared_(new (memory_.bytes().data()) SharedInCleaning) {
    for (std::uint32_t client = 0; client < kClients; ++client) {
      logs_.push_back(std::make_unique<SharedMemory>(kv::OperationLog::bytes_for(kLogged)));
    }
  }
  pid_t start_server() {
    return processes_.start_server([this](const kv::KvPartition& partition) -> Task<> {
      for (;;) {
        const kv::KvSpace space = partition.space();
        shared_->cleanings_now = space.cleanings_now;
        shared_->cleanings = space.cleanings;
        co_await yield();
      }
    });
  }
  void kill_server(pid_t server) {
    processes_.kill_process(server);
    shared_->cleanings_now = 0;
  }
  void start_clients() {
    for (std::uint32_t client = 0; client < kClients; ++client) {
      processes_.start(1 + client, [this, client](Thread& thread) { return use(thread, client); });
    }
  }
  SharedInCleaning& shared() { return *shared_; }
  history::History history() {
    processes_.kill_all();
    history::History all;
    for (const auto& log : logs_) all.add(kv::OperationLog::read(log->bytes()));
    return all;
  }

 private:
  // Loads its share of the keys, updates all, reads all.
  Task<> use(Thread& thread, std::uint32_t client) {
    Versions versions(client);
    std::mt19937_64 random(client);
    TestFormat format;
    kv::OperationLog log(logs_[client]->bytes());
    Buffer into(kValue);
    std::uint64_t loaded = client;
    std::uint64_t read = 0;
    while (read < kCleanedKeys) {
      const auto connection = co_await processes_.connect(thread);
      kv::RecordedSession session(*connection, client, format, log);
      for (bool connected = true; connected && read < kCleanedKeys;) {
        const bool loading = loaded < kCleanedKeys;
        const bool reading = !loading && shared_->enough;
        const std::uint64_t number = loading ? loaded : reading ? read : random() % kCleanedKeys;
        const Buffer key = key_of(number);
        if (reading || random() % 8 == 0) {
          connected = is_connected(co_await session.get(key, into));
          if (connected && reading) ++read;
        } else {
          const Buffer value = value_of(number, versions.next(), kValue);
          connected = is_connected(co_await session.put(key, value));
          if (connected && !loading) ++shared_->updates;
          if (connected && loading) loaded += kClients;
        }
      }
    }
    ++shared_->ended;
    WaitList forever;
    co_await wait(forever);
  }
  bool is_connected(const auto& result) {
    if (result) return true;
    if (result.error() == kv::Error::disconnected) return false;
    if (result.error() != kv::Error::not_found) ++shared_->unexpected;
    return true;
  }

  SharedMemory memory_{sizeof(SharedInCleaning)};
  std::vector<std::unique_ptr<SharedMemory>> logs_;
  SharedInCleaning* shared_;
  KvProcesses processes_{"erda", config_of({8, kRegions, kRegion, kRegion}, kCleanedKeys)};
};

TEST(KillInCleaning, TheServerAgainAndAgain) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  CleaningCluster cluster;
  SharedInCleaning& shared = cluster.shared();
  cluster.start_clients();
  Clock::duration longest{};  // cleaning that was watched to its end
  for (int kill = 0; kill < kKillsInCleaning; ++kill) {
    const pid_t server = cluster.start_server();
    ASSERT_TRUE(wait_until([&] { return shared.updates >= kill * kUpdatesPerKill; }))
        << "after kill " << kill;
    for (bool killed = false; !killed;) {
      ASSERT_TRUE(wait_until([&] { return shared.cleanings_now == 0; })) << "kill " << kill;
      ASSERT_TRUE(wait_until([&] { return shared.cleanings_now > 0; })) << "kill " << kill;
      const auto begin = Clock::now();
      const auto moment = begin + longest * (random() % 1000) / 1000;
      while (shared.cleanings_now > 0 && (longest.count() == 0 || Clock::now() < moment)) {
      }
      if (shared.cleanings_now > 0) {
        cluster.kill_server(server);
        killed = true;
      } else {
        longest = std::max(longest, Clock::now() - begin);
      }
    }
  }
  cluster.start_server();
  ASSERT_TRUE(wait_until([&] { return shared.updates >= kUpdates; }));
  shared.enough = true;
  ASSERT_TRUE(wait_until([&] { return shared.ended == kClients; }));
  EXPECT_EQ(shared.unexpected, 0U);
  const history::History history = cluster.history();
  EXPECT_GE(history.size(), kUpdates + kClients * kCleanedKeys);
  const history::CheckResult verdict = history::check(history);
  EXPECT_TRUE(verdict.accepted());
  std::cout << describe(verdict) << "; " << kKillsInCleaning << " kills within a cleaning of up to "
            << std::chrono::duration_cast<std::chrono::microseconds>(longest).count() << " us\n";
}

}  // namespace
}  // namespace perdura::systems::test
