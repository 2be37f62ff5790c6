// Real processes on shared memory: the server is killed by SIGKILL in one resize after the other,
// while a client fills the store. Everything acknowledged is there afterwards.
#include <atomic>
#include <chrono>
#include <random>

#include "systems/bucket_hash/pool.h"
#include "systems/level/layout.h"
#include "tests/support/wait_until.h"
#include "tests/systems/kill/kv_processes.h"
#include "tests/systems/kv/support.h"

namespace perdura::systems::test {
namespace {

using perdura::test::wait_until;
using Clock = std::chrono::steady_clock;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kKills = 3;
#else
constexpr int kKills = 10;
#endif
constexpr Bytes kValue = 15;
const KvConfig kConfig{.key_size = 16,
                       .value_size = kValue,
                       .max_value_size = kValue,
                       .records = 100,
                       .writes = 100'000,
                       .sessions = 64,
                       .parameters = {{"top_buckets", 4}, {"resizes", 7}}};

// What the processes tell each other; it outlives each of them.
struct Shared {
  std::atomic<bool> resizing{false};
  std::atomic<bool> ended{false};  // the store is full, and holds what it should
  std::atomic<std::uint64_t> stored{0};
  std::atomic<std::uint64_t> wrong{0};
};

Task<> watch(const pmem::Region& pool, Shared& shared) {
  constexpr Bytes kState = bucket_hash::kIndexOffset + level::kStateOffset;
  for (;;) {
    shared.resizing = level::State::from(pool.load(kState)).resizing;
    co_await yield();
  }
}

Task<> serve(Thread& thread, Shared& shared) {
  const auto partition = find_kv_system("level").open(thread, "pool", kConfig);
  const auto pool = thread.node.open_region("pool");
  thread.executor.spawn(watch(*pool, shared));
  co_await partition->serve();
}

// Keys 0, 1, ... until there is no room, with their number as version, and after each failure the
// last ones again.
Task<> fill(Thread& thread, const KvProcesses& processes, Shared& shared) {
  constexpr std::uint64_t kLooks = 30;
  std::uint64_t next = 0;
  bool full = false;
  // False if the connection broke.
  const auto look = [&shared](KvSession& session, std::uint64_t from,
                              std::uint64_t to) -> Task<bool> {
    for (std::uint64_t number = from; number < to; ++number) {
      const Buffer key = key_of(number);
      Buffer into(kValue);
      const auto got = co_await session.get(key, into);
      if (!got && got.error() == Error::disconnected) co_return false;
      const bool right = got && version_of(number, std::span(into).first(*got)) == number + 1;
      if (!right) ++shared.wrong;
    }
    co_return true;
  };
  while (!shared.ended) {
    const auto session = co_await processes.connect(thread);
    bool connected = co_await look(*session, next - std::min(next, kLooks), next);
    while (connected && !full) {
      const Buffer key = key_of(next);
      const Buffer value = value_of(next, next + 1, kValue);
      const Result<void> done = co_await session->put(key, value);
      if (done) {
        shared.stored = ++next;
        continue;
      }
      connected = done.error() != Error::disconnected;
      full = done.error() == Error::out_of_space;
      if (connected && !full) ++shared.wrong;
    }
    if (connected && co_await look(*session, 0, next)) shared.ended = true;
  }
}

TEST(LevelKill, TheServerInOneResizeAfterTheOther) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  Clock::duration longest{};  // resize that was watched to its end
  int stores = 0;
  for (int kills = 0; kills < kKills; ++stores) {
    SharedMemory memory(sizeof(Shared));
    Shared& shared = *new (memory.bytes().data()) Shared;
    KvProcesses processes("level", kConfig);
    const auto start_server = [&] {
      return processes.start(0, [&shared](Thread& thread) { return serve(thread, shared); });
    };
    pid_t server = start_server();
    processes.start(1, [&](Thread& thread) { return fill(thread, processes, shared); });
    for (;;) {
      ASSERT_TRUE(wait_until([&] { return shared.resizing || shared.ended; }));
      if (!shared.resizing) break;
      const auto begin = Clock::now();
      // Up to twice as long, so that some end and the longest is known.
      const auto moment = begin + longest * (random() % 2000) / 1000;
      while (shared.resizing && (longest.count() == 0 || Clock::now() < moment)) {
      }
      if (!shared.resizing) {
        longest = std::max(longest, Clock::now() - begin);
        continue;
      }
      processes.kill_process(server);
      ++kills;
      shared.resizing = false;
      server = start_server();
    }
    EXPECT_EQ(shared.wrong, 0U);
    EXPECT_GT(shared.stored, 500U);
    if (HasFailure()) return;
  }
  std::cout << kKills << " kills or more in resizes of " << stores << " stores\n";
}

}  // namespace
}  // namespace perdura::systems::test
