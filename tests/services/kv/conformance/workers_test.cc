// Every key-value system whose partitions several workers serve, in its small stores: clients of
// all workers fill a store at the same time, so that several find no room at the same moment.
// Whoever is in the middle of a change stays there for long: memory is slow, and real threads are
// interrupted.
#include <utility>

#include "services/kv/small_store.h"
#include "tests/services/kv/conformance/shared_store.h"
#include "tests/support/interruptions.h"

namespace perdura::systems::test {
namespace {

constexpr std::uint32_t kWorkers = 2;        // and as many clients, each of one of them
constexpr std::uint32_t kLanesOfClient = 8;  // of each client, so that no worker waits for it
constexpr std::uint64_t kMoreThanFit = 120;  // more than any small store holds
constexpr Bytes kShort = 64;
// What happens at the same moment is chance on real threads. With so many stores a resize beside
// another one, or beside a put, was noticed in each of six runs.
constexpr int kStores = 100;

std::vector<Subject> shared_subjects() {
  std::vector<Subject> subjects;
  for (const Subject& subject : all_subjects()) {
    if (find_kv_system(subject.system).shares_partition) subjects.push_back(subject);
  }
  return subjects;
}

class Workers : public testing::TestWithParam<Subject> {
 protected:
  const kv::KvSystem& system() const { return find_kv_system(GetParam().system); }

  // Fills a new store, and finds what it holds. Returns the number of keys.
  std::uint64_t fill(const kv::KvConfig& config);

 private:
  struct Client {
    std::uint64_t next = 0;             // key to be inserted; each kWorkers-th is this client's
    std::uint32_t filling = 0;          // lanes that have not ended
    std::vector<std::uint64_t> stored;  // keys
  };
  Task<> insert(kv::KvSession& session, const kv::KvConfig& config, Client& client);
  Task<> find(kv::KvSession& session, const kv::KvConfig& config, std::uint64_t number);
};
INSTANTIATE_TEST_SUITE_P(All, Workers, testing::ValuesIn(shared_subjects()), subject_name);

Task<> Workers::insert(kv::KvSession& session, const kv::KvConfig& config, Client& client) {
  while (client.next < kMoreThanFit) {
    const std::uint64_t number = std::exchange(client.next, client.next + kWorkers);
    const Buffer key = key_of(number, config.key_size);
    const Buffer value = value_of(number, 1, config.value_size);
    const auto put = co_await session.put(key, value);
    if (put) {
      client.stored.push_back(number);
    } else {
      EXPECT_EQ(put.error(), kv::Error::out_of_space);
    }
  }
  --client.filling;
}

Task<> Workers::find(kv::KvSession& session, const kv::KvConfig& config, std::uint64_t number) {
  const Buffer key = key_of(number, config.key_size);
  Buffer into(config.max_value_size);
  const auto got = co_await session.get(key, into);
  EXPECT_TRUE(got) << "key " << number;
  if (got) {
    EXPECT_EQ(version_of(number, std::span(into).first(*got)), 1U);
  }
}

std::uint64_t Workers::fill(const kv::KvConfig& config) {
  const auto platform =
      perdura::test::make_platform_of_slow_memory(GetParam().platform, 1 + kWorkers);
  SharedStore store(*platform, system(), config);
  const auto all_full = platform->create_barrier(kWorkers);
  std::vector<Client> clients(kWorkers);
  for (std::uint32_t number = 0; number < kWorkers; ++number) {
    platform->start(1 + number, 10, CompletionMode::polling, [&, number](Thread& thread) -> Task<> {
      const auto session =
          co_await system().connect(thread, {0, static_cast<fabric::Port>(number)}, config);
      Client& client = clients[number];
      client.next = number;
      for (; client.filling < kLanesOfClient; ++client.filling) {
        thread.executor.spawn(insert(*session, config, client));
      }
      while (client.filling > 0) co_await sleep_for(Microseconds(5));
      co_await all_full->arrive_and_wait();
      for (const Client& one : clients) {
        for (const std::uint64_t key : one.stored) co_await find(*session, config, key);
      }
    });
  }
  const perdura::test::Interruptions interruptions;
  platform->run();
  std::uint64_t keys = 0;
  for (const Client& client : clients) keys += client.stored.size();
  return keys;
}

TEST_P(Workers, FillAStoreTogether) {
  for (std::size_t small = 0; small < system().small_stores.size(); ++small) {
    kv::KvConfig config{.key_size = system().fit_key(24),
                        .value_size = system().fit_value(kShort),
                        .max_value_size = system().fit_value(kShort),
                        .records = 8,
                        .writes = kMoreThanFit,
                        .sessions = 2,
                        .workers = kWorkers,
                        .parameters = {}};
    services::make_small(system(), small, config);
    for (int store = 0; store < kStores && !HasFailure(); ++store) {
      SCOPED_TRACE(testing::Message()
                   << "small store " << small << ", filled " << store << " times");
      const std::uint64_t keys = fill(config);
      EXPECT_GE(keys, config.records);
      EXPECT_LT(keys, kMoreThanFit) << "the store was never full";
    }
  }
}

}  // namespace
}  // namespace perdura::systems::test
