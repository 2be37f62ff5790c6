// Several workers on real threads change one index at the same time, without a network between
// them, so that they meet in the same buckets all the time: each finds what it has put, and nothing
// that it has erased.
#include <memory>
#include <random>

#include "systems/bucket_hash/server.h"
#include "systems/continuity/design.h"
#include "systems/level/design.h"
#include "systems/pfarm/design.h"
#include "systems/registry/registry.h"
#include "tests/systems/bucket_hash/contents.h"
#include "tests/systems/bucket_hash/hash_store.h"

namespace perdura::systems::test {
namespace {

using bucket_hash::Server;
using perdura::test::item_of;
using perdura::test::numbered_key;
using perdura::test::numbered_value;

struct Contended {
  std::string system;
  std::uint32_t workers = 2;
  std::uint64_t resizes = 0;
};

std::vector<Contended> contended() {
  std::vector<Contended> all;
  for (const std::string& system : systems_with_workers()) {
    for (const std::uint32_t workers : {2U, 4U}) {
      for (const std::uint64_t resizes : {0U, 4U}) all.push_back({system, workers, resizes});
    }
  }
  return all;
}

class HashServers : public testing::TestWithParam<Contended> {
 protected:
  static constexpr std::uint64_t kKeys = 8;  // of each worker, to a table of some twenty slots

  template <class Design>
  Task<> work(Server<Design>& server, std::uint32_t worker);
  template <class Design>
  void run();

  // Of all workers: how often an operation did what it should not, and how many items they have.
  std::atomic<std::uint64_t> wrong_{0};
  std::atomic<std::uint64_t> items_{0};
};
INSTANTIATE_TEST_SUITE_P(All, HashServers, testing::ValuesIn(contended()),
                         [](const testing::TestParamInfo<Contended>& subject) {
                           const Contended& of = subject.param;
                           return test_name(of.system + (of.resizes > 0 ? "_growing" : ""),
                                            of.workers);
                         });

// Of keys that no other worker writes.
template <class Design>
Task<> HashServers::work(Server<Design>& server, std::uint32_t worker) {
  std::mt19937_64 random(worker);
  std::array<bool, kKeys> there{};
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    // Tasks that never wait stay on one another's stack where calls are not optimized.
    if (i % 64 == 0) co_await yield();
    const std::uint64_t number = random() % kKeys;
    const std::string key = numbered_key(worker * kKeys + number);
    if (random() % 3 == 0) {
      const auto erased = co_await server.erase(worker, item_of(key));
      if (erased.has_value() != there[number]) ++wrong_;
      there[number] = false;
    } else if (co_await server.put(worker, item_of(key, numbered_value(i % 1000)))) {
      there[number] = true;
    }
  }
  for (std::uint64_t number = 0; number < kKeys; ++number) {
    const std::string key = numbered_key(worker * kKeys + number);
    const auto erased = co_await server.erase(worker, item_of(key));
    if (erased.has_value() != there[number]) ++wrong_;
    // Nor is there another one.
    if (co_await server.erase(worker, item_of(key))) ++wrong_;
    if (!co_await server.put(worker, item_of(key))) continue;
    ++items_;
  }
}

template <class Design>
void HashServers::run() {
  const std::uint32_t workers = GetParam().workers;
  const kv::KvConfig config =
      resizing_config(find_kv_system(GetParam().system), workers, GetParam().resizes);
  const auto platform = perdura::test::make_platform("shm", 1);
  const auto opened = platform->create_barrier(workers);
  const auto ended = platform->create_barrier(workers);
  std::unique_ptr<Server<Design>> server;
  const auto make_server = [&](Node& node) {
    return std::make_unique<Server<Design>>(node, "pool", config, Design::Parameters::of(config));
  };
  for (std::uint32_t worker = 0; worker < workers; ++worker) {
    platform->start(0, static_cast<fabric::Port>(worker), CompletionMode::polling,
                    [&, worker](Thread& thread) -> Task<> {
                      if (worker == 0) server = make_server(thread.node);
                      co_await opened->arrive_and_wait();
                      co_await work(*server, worker);
                      co_await ended->arrive_and_wait();
                      if (worker != 0) co_return;
                      const auto items_of = [](const kv::KvSpace& space) {
                        return (space.capacity - space.free) / bucket_hash::kSlotSize;
                      };
                      EXPECT_EQ(items_of(server->space()), items_);
                      // And after a restart.
                      server.reset();
                      server = make_server(thread.node);
                      EXPECT_EQ(items_of(server->space()), items_);
                      server.reset();
                    });
  }
  platform->run();
  EXPECT_EQ(wrong_, 0U);
  EXPECT_GT(items_, 8U);
}

TEST_P(HashServers, KeepWhatTheirWorkersWriteToTheSameBuckets) {
  const std::string& system = GetParam().system;
  if (system == continuity::kName) return run<continuity::Design>();
  if (system == level::kName) return run<level::Design>();
  ASSERT_EQ(system, pfarm::kName);
  run<pfarm::Design>();
}

}  // namespace
}  // namespace perdura::systems::test
