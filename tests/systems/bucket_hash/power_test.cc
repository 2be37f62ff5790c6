// The server's power fails at every moment of a history in which clients of one or two workers
// write at the same time, and make the table grow, while another one reads: what was acknowledged
// is there at every moment and afterwards, and what was under way has taken effect or not.
#include "platform/sim/failures.h"
#include "systems/registry/registry.h"
#include "tests/support/explore.h"
#include "tests/systems/bucket_hash/workers.h"

namespace perdura::systems::test {
namespace {

using perdura::sim::Explored;
using perdura::sim::ExploreOptions;
using perdura::sim::Failure;
using perdura::sim::Images;
using perdura::test::explore_until_failure;

constexpr std::uint64_t kKeysOfAClient =
    14;  // of each client; more than a table has slots at first
constexpr std::uint64_t kSteps = 20;
constexpr Bytes kValue = 15;

// What was written under one key: versions in their order, 0 for its absence.
struct Known {
  std::vector<std::uint64_t> versions{0};
  std::size_t acknowledged = 0;  // the last one

  bool has(std::uint64_t version, std::size_t since) const {
    return std::find(versions.begin() + static_cast<std::ptrdiff_t>(since), versions.end(),
                     version) != versions.end();
  }
};
using KnownKeys = std::array<Known, kKeysOfAClient>;

class PowerOfWorkers : public testing::TestWithParam<std::pair<std::string, std::uint32_t>> {
 protected:
  const kv::KvSystem& system() const { return find_kv_system(GetParam().first); }
  Explored fail_everywhere(const ExploreOptions& options);
};

std::vector<std::pair<std::string, std::uint32_t>> numbers_of_workers() {
  std::vector<std::pair<std::string, std::uint32_t>> all;
  for (const std::string& system : systems_with_workers()) {
    for (const std::uint32_t workers : {1U, 2U, 4U}) all.emplace_back(system, workers);
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, PowerOfWorkers, testing::ValuesIn(numbers_of_workers()),
                         [](const auto& subject) {
                           return test_name(subject.param.first, subject.param.second);
                         });

// Creations, then updates and deletions between them.
Task<> write(kv::KvSession& session, std::uint64_t client, KnownKeys& known) {
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    const std::uint64_t number = step < kKeysOfAClient ? step : (step - kKeysOfAClient) * 2;
    const bool erases = step % 4 == 3 && step >= kKeysOfAClient;
    Known& key = known[number];
    key.versions.push_back(erases ? 0 : step + 1);
    const Buffer name = key_of(client * kKeysOfAClient + number);
    kv::Result<void> written;
    if (erases) {
      written = co_await session.erase(name);
    } else {
      const Buffer value = value_of(client * kKeysOfAClient + number, step + 1, kValue);
      written = co_await session.put(name, value);
    }
    if (!written) {
      EXPECT_EQ(written.error(), kv::Error::disconnected);
      co_return;
    }
    key.acknowledged = key.versions.size() - 1;
  }
}

// A get of one of the client's keys; false if the connection broke. What it finds was there at some
// moment between its beginning and its end.
Task<bool> check_one(kv::KvSession& session, std::uint64_t client, std::uint64_t number,
                     const Known& known) {
  const Buffer name = key_of(client * kKeysOfAClient + number);
  Buffer into(kValue);
  const std::size_t since = known.acknowledged;
  const auto got = co_await session.get(name, into);
  if (!got && got.error() == kv::Error::disconnected) co_return false;
  const std::uint64_t found =
      got ? version_of(client * kKeysOfAClient + number, std::span(into).first(*got)).value_or(999)
          : 0;
  EXPECT_TRUE(known.has(found, since))
      << "key " << number << " of client " << client << " has version " << found;
  co_return true;
}

Task<> check_all(kv::KvSession& session, std::uint64_t client, const KnownKeys& known) {
  for (std::uint64_t number = 0; number < kKeysOfAClient; ++number) {
    EXPECT_TRUE(co_await check_one(session, client, number, known[number]));
  }
}

Explored PowerOfWorkers::fail_everywhere(const ExploreOptions& options) {
  const std::uint32_t workers = GetParam().second;
  const kv::KvConfig config = resizing_config(system(), workers, 3);
  Bytes least = ~Bytes{0};
  Bytes most = 0;
  std::uint64_t reads = 0;
  const Explored explored = explore_until_failure(options, [&](Failure& failure) {
    SCOPED_TRACE(failure.text());
    const auto made = perdura::test::make_platform("sim", 4);
    auto& platform = static_cast<perdura::sim::SimPlatform&>(*made);
    platform.track_durability({pmem::PersistenceDomain::dmp, false});
    std::array<KnownKeys, 2> known{};
    std::uint32_t connected = 0;
    std::uint32_t ended = 0;
    failure.enable(false);
    SharedStore store(platform, system(), config);
    for (std::uint32_t client = 0; client < 2; ++client) {
      platform.start(1 + client, 10, CompletionMode::polling,
                     [&, client](Thread& thread) -> Task<> {
                       const auto port = static_cast<fabric::Port>(client * (workers - 1));
                       const auto session = co_await system().connect(thread, {0, port}, config);
                       for (++connected; connected < 3;) co_await sleep_for(Microseconds(1));
                       failure.enable(true);
                       co_await write(*session, client, known[client]);
                       ++ended;
                     });
    }
    platform.start(3, 10, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto session = co_await system().connect(thread, {0, 0}, config);
      ++connected;
      for (std::uint64_t i = 0; ended < 2; ++i) {
        const std::uint64_t client = i % 2;
        const std::uint64_t number = i / 2 % kKeysOfAClient;
        if (!co_await check_one(*session, client, number, known[client][number])) break;
        ++reads;
      }
    });
    const auto server = [&](Thread& thread) -> Task<> {
      const auto partition = system().open(thread, "pool", config);
      least = std::min(least, partition->space().capacity);
      most = std::max(most, partition->space().capacity);
      co_await partition->serve();
    };
    failure.watch(platform, [&](pmem::Choices& choices) {
      platform.fail_power(0, choices);
      platform.start_service(0, 0, CompletionMode::polling, server);
      platform.start(3, 11, CompletionMode::polling, [&](Thread& thread) -> Task<> {
        while (ended < 2) co_await sleep_for(Microseconds(50));
        const auto session = co_await system().connect(thread, {0, 0}, config);
        for (std::uint64_t client = 0; client < 2; ++client) {
          co_await check_all(*session, client, known[client]);
        }
      });
    });
    platform.run();
  });
  EXPECT_GT(most, least) << "some failures should come after the table has grown";
  EXPECT_GT(reads, explored.runs);
  return explored;
}

TEST_P(PowerOfWorkers, LosesNothingWhereverItFails) {
  // With one worker more images, at fewer moments.
  const ExploreOptions all =
      GetParam().second == 1
          ? ExploreOptions{.images = Images::all, .stride = 23, .most_images = 100}
          : ExploreOptions{.images = Images::all, .stride = 17, .most_images = 60};
  Explored explored;
  for (ExploreOptions options :
       {ExploreOptions{.images = Images::least}, ExploreOptions{.images = Images::most},
        ExploreOptions{.images = Images::random, .seed = 1}, all}) {
    SCOPED_TRACE(to_string(options.images));
    options.before = &explored;
    explored = fail_everywhere(options);
    EXPECT_GT(explored.crash_points, 500U);
    EXPECT_GE(explored.runs, explored.tried);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace perdura::systems::test
