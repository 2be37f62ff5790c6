// The server's power fails at every moment of a history in which clients of two workers write at
// the same time, and make the table grow: what was acknowledged is there afterwards, and what was
// under way has taken effect or not.
#include "platform/sim/failures.h"
#include "tests/systems/bucket_hash/workers.h"

namespace perdura::systems::test {
namespace {

using perdura::sim::explore_failures;
using perdura::sim::Explored;
using perdura::sim::ExploreOptions;
using perdura::sim::Failure;
using perdura::sim::Images;

constexpr std::uint64_t kKeys = 14;  // of each client; more than a table has slots at first
constexpr std::uint64_t kSteps = 20;
constexpr Bytes kValue = 15;

struct Known {
  std::uint64_t acknowledged = 0;  // version; 0 is absent
  std::uint64_t uncertain = 0;
};
using KnownKeys = std::array<Known, kKeys>;

class PowerOfWorkers : public testing::TestWithParam<std::pair<std::string, std::uint32_t>> {
 protected:
  const KvSystem& system() const { return find_kv_system(GetParam().first); }
  Explored fail_everywhere(const ExploreOptions& options);
};

std::vector<std::pair<std::string, std::uint32_t>> systems_with_workers() {
  std::vector<std::pair<std::string, std::uint32_t>> all;
  for (const KvSystem& system : kv_systems()) {
    if (!system.shares_partition) continue;
    for (const std::uint32_t workers : {2U, 4U}) all.emplace_back(system.name, workers);
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, PowerOfWorkers, testing::ValuesIn(systems_with_workers()),
                         [](const auto& subject) {
                           return test_name(subject.param.first, subject.param.second);
                         });

// Creations, then updates and deletions between them.
Task<> write(KvSession& session, std::uint64_t client, KnownKeys& known) {
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    const std::uint64_t number = step < kKeys ? step : (step - kKeys) * 2;
    const bool erases = step % 4 == 3 && step >= kKeys;
    Known& key = known[number];
    key.uncertain = erases ? 0 : step + 1;
    const Buffer name = key_of(client * kKeys + number);
    Result<void> written;
    if (erases) {
      written = co_await session.erase(name);
    } else {
      const Buffer value = value_of(client * kKeys + number, step + 1, kValue);
      written = co_await session.put(name, value);
    }
    if (!written) {
      EXPECT_EQ(written.error(), Error::disconnected);
      co_return;
    }
    key.acknowledged = key.uncertain;
  }
}

Task<> check(KvSession& session, std::uint64_t client, const KnownKeys& known) {
  for (std::uint64_t number = 0; number < kKeys; ++number) {
    const Buffer name = key_of(client * kKeys + number);
    Buffer into(kValue);
    const auto got = co_await session.get(name, into);
    const std::uint64_t found =
        got ? version_of(client * kKeys + number, std::span(into).first(*got)).value_or(999) : 0;
    EXPECT_TRUE(found == known[number].acknowledged || found == known[number].uncertain)
        << "key " << number << " of client " << client << " has version " << found;
  }
}

Explored PowerOfWorkers::fail_everywhere(const ExploreOptions& options) {
  const std::uint32_t workers = GetParam().second;
  const KvConfig config = resizing_config(system(), workers, 3);
  Bytes least = ~Bytes{0};
  Bytes most = 0;
  const Explored explored = explore_failures(options, [&](Failure& failure) {
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
                       for (++connected; connected < 2;) co_await sleep_for(Microseconds(1));
                       failure.enable(true);
                       co_await write(*session, client, known[client]);
                       ++ended;
                     });
    }
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
          co_await check(*session, client, known[client]);
        }
      });
    });
    platform.run();
  });
  EXPECT_GT(most, least) << "some failures should come after the table has grown";
  return explored;
}

TEST_P(PowerOfWorkers, LosesNothingWhereverItFails) {
  for (const ExploreOptions& options :
       {ExploreOptions{.images = Images::least}, ExploreOptions{.images = Images::most},
        ExploreOptions{.images = Images::random, .seed = 1},
        ExploreOptions{.images = Images::all, .stride = 7, .most_images = 60}}) {
    SCOPED_TRACE(to_string(options.images));
    const Explored explored = fail_everywhere(options);
    EXPECT_GT(explored.moments, 500U);
    EXPECT_GE(explored.runs, explored.tried);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace perdura::systems::test
