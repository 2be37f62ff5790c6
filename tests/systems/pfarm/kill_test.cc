// The server of P-FaRM-KV is killed by SIGKILL in the middle of resizes, again and again, while one
// process inserts and another reads: whatever was acknowledged is found, at any time and in the
// end.
#include <signal.h>

#include <atomic>
#include <iostream>
#include <random>

#include "systems/bucket_hash/pool.h"
#include "systems/pfarm/layout.h"
#include "tests/support/wait_until.h"
#include "tests/systems/kill/kv_processes.h"
#include "tests/systems/kv/support.h"

namespace perdura::systems::test {
namespace {

using perdura::test::wait_until;

constexpr std::uint64_t kResizes = 8;
constexpr std::uint64_t kFirstBuckets = 4;
constexpr std::uint64_t kKeys = (kFirstBuckets << kResizes) * pfarm::kBucketSlots * 2 / 5;
constexpr Bytes kValue = 15;

// What the processes tell each other; it outlives each of them.
struct Shared {
  std::atomic<std::uint64_t> steps{0};  // of its next resize, after which the server dies
  std::atomic<bool> dying{false};
  std::atomic<std::uint64_t> acknowledged{0};  // all keys below are in the store
  std::atomic<std::uint64_t> reads{0};
  std::atomic<std::uint64_t> found_at_the_end{0};
  std::atomic<bool> read_all{false};
  std::atomic<std::uint64_t> missed{0};
  std::atomic<std::uint64_t> unexpected{0};
};

class GrowingCluster {
 public:
  Shared& shared() { return *shared_; }

  pid_t start_server() {
    return processes_.start(0, [this](Thread& thread) -> Task<> {
      const auto partition = find_kv_system("p-farm-kv").open(thread, "pool", config());
      thread.executor.spawn(watch(thread, *shared_));
      co_await partition->serve();
    });
  }
  // Buries one that has died.
  void end_server(pid_t server) {
    processes_.kill_process(server);
    shared_->dying = false;
  }
  void start_clients() {
    processes_.start(1, [this](Thread& thread) { return insert(thread); });
    processes_.start(2, [this](Thread& thread) { return read(thread); });
  }

 private:
  static KvConfig config() {
    return {.key_size = 16,
            .value_size = kValue,
            .max_value_size = kValue,
            .records = kKeys,
            .writes = kKeys,
            .sessions = 64,
            .parameters = {{"buckets", kFirstBuckets}, {"resizes", kResizes}}};
  }

  // Dies within a resize: the server lets others run after each step of one.
  static Task<> watch(Thread& thread, Shared& shared) {
    const auto region = thread.node.open_region("pool");
    for (std::uint64_t steps = 0;;) {
      const auto word = region->load(bucket_hash::kIndexOffset + pfarm::kStateOffset);
      steps = pfarm::State::from(word).resizing ? steps + 1 : 0;
      if (steps > shared.steps) {
        shared.dying = true;
        raise(SIGKILL);
      }
      co_await yield();
    }
  }

  Task<> insert(Thread& thread) {
    while (shared_->acknowledged < kKeys) {
      const auto session = co_await processes_.connect(thread);
      while (shared_->acknowledged < kKeys) {
        const std::uint64_t number = shared_->acknowledged;
        const Buffer key = key_of(number);
        const Buffer value = value_of(number, 1, kValue);
        const auto put = co_await session->put(key, value);
        if (!put && put.error() != Error::disconnected) ++shared_->unexpected;
        if (!put) break;
        ++shared_->acknowledged;
      }
    }
    WaitList forever;
    co_await wait(forever);
  }

  Task<> read(Thread& thread) {
    std::mt19937_64 random(1);
    for (;;) {
      const auto session = co_await processes_.connect(thread);
      shared_->found_at_the_end = 0;
      for (bool connected = true; connected;) {
        const std::uint64_t there = shared_->acknowledged;
        if (there == 0) {
          co_await yield();
          continue;
        }
        const bool last = there == kKeys;
        const std::uint64_t number = last ? shared_->found_at_the_end.load() : random() % there;
        const Buffer key = key_of(number);
        Buffer into(kValue);
        const auto got = co_await session->get(key, into);
        connected = got || got.error() != Error::disconnected;
        if (!connected) break;
        ++shared_->reads;
        if (!got || version_of(number, into) != 1) ++shared_->missed;
        if (last && ++shared_->found_at_the_end == kKeys) {
          shared_->read_all = true;
          WaitList forever;
          co_await wait(forever);
        }
      }
    }
  }

  SharedMemory memory_{sizeof(Shared)};
  Shared* shared_ = new (memory_.bytes().data()) Shared;
  KvProcesses processes_{"p-farm-kv", config()};
};

TEST(PFarmKill, TheServerInResizesAgainAndAgain) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  std::uint64_t kills = 0;
  for (int round = 0; round < 3; ++round) {
    GrowingCluster cluster;
    Shared& shared = cluster.shared();
    cluster.start_clients();
    const auto loaded = [&] { return shared.acknowledged == kKeys; };
    while (!loaded()) {
      shared.steps = random() % (kFirstBuckets << random() % 4);
      const pid_t server = cluster.start_server();
      ASSERT_TRUE(wait_until([&] { return loaded() || shared.dying; }))
          << shared.acknowledged << " of " << kKeys << " keys, after " << kills << " kills";
      if (loaded()) break;
      cluster.end_server(server);
      ++kills;
    }
    ASSERT_TRUE(wait_until([&] { return shared.read_all.load(); }));
    EXPECT_EQ(shared.missed, 0U);
    EXPECT_EQ(shared.unexpected, 0U);
    EXPECT_GT(shared.reads, kKeys);
  }
  std::cout << kills << " kills in resizes\n";
  EXPECT_GE(kills, 12U);
}

}  // namespace
}  // namespace perdura::systems::test
