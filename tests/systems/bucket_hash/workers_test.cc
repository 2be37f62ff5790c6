// Several worker threads serve one partition: what clients of different workers do with the same
// keys is linearizable, also while the table is resized.
#include <atomic>
#include <random>

#include "systems/registry/registry.h"
#include "tests/services/kv/conformance/recording.h"
#include "tests/systems/bucket_hash/workers.h"

namespace perdura::systems::test {
namespace {

struct SharedSubject {
  std::string system;
  std::string platform;
  std::uint32_t workers = 1;
};

std::vector<SharedSubject> shared_subjects() {
  std::vector<SharedSubject> subjects;
  for (const Subject& subject : all_subjects()) {
    if (!find_kv_system(subject.system).shares_partition) continue;
    for (const std::uint32_t workers : {1U, 2U, 4U}) {
      subjects.push_back({subject.system, subject.platform, workers});
    }
  }
  return subjects;
}

class SharedPartition : public testing::TestWithParam<SharedSubject> {
 protected:
  const kv::KvSystem& system() const { return find_kv_system(GetParam().system); }
  std::uint32_t workers() const { return GetParam().workers; }
};
INSTANTIATE_TEST_SUITE_P(All, SharedPartition, testing::ValuesIn(shared_subjects()),
                         [](const testing::TestParamInfo<SharedSubject>& subject) {
                           return test_name(subject.param.system + "_" + subject.param.platform,
                                            subject.param.workers);
                         });

// All clients write all keys.
TEST_P(SharedPartition, IsLinearizableWhileClientsOfAllWorkersMakeItGrow) {
  constexpr std::uint64_t kKeys = 100;
  constexpr std::uint32_t kClients = 4;
  const kv::KvConfig config = resizing_config(system(), workers(), 8);
  const auto platform = perdura::test::make_platform(GetParam().platform, 4);
  SharedStore store(*platform, system(), config);
  Recording recording;
  std::atomic<std::uint64_t> refused{0};
  std::atomic<bool> grown{false};
  for (std::uint32_t client = 0; client < kClients; ++client) {
    const auto work = recording.of([&, client](kv::KvSession& session, Thread&) -> Task<> {
      std::mt19937_64 random(client);
      Buffer into(15);
      for (std::uint64_t i = 0; i < 600; ++i) {
        const Buffer key = key_of(random() % std::min(kKeys, 1 + i / 4));
        const std::uint64_t choice = random() % 8;
        if (choice < 4) {
          const Buffer value =
              value_of(TestFormat().key_number(key), 1 + i * kClients + client, 15);
          if (!co_await session.put(key, value)) ++refused;
        } else if (choice == 4) {
          co_await session.erase(key);
        } else {
          co_await session.get(key, into);
        }
      }
    });
    platform->start(1 + client % 3, static_cast<fabric::Port>(10 + client), CompletionMode::polling,
                    [&, client, work](Thread& thread) -> Task<> {
                      const auto session = co_await system().connect(
                          thread, {0, static_cast<fabric::Port>(client % workers())}, config);
                      co_await work(*session, thread);
                      grown = store.capacity() > store.first_capacity();
                    });
  }
  platform->run();
  EXPECT_EQ(refused, 0U);
  EXPECT_TRUE(grown);
  const auto verdict = history::check(recording.history());
  EXPECT_TRUE(verdict.accepted()) << describe(verdict);
  EXPECT_EQ(recording.history().size(), kClients * 600U);
}

}  // namespace
}  // namespace perdura::systems::test
