// Every key-value system in each of its small stores, in which it cleans, moves, grows and goes
// around all the time, under clients that write, delete and read the same keys. Nothing fails, also
// where a READ lasts for so long that what it reads moves meanwhile.
#include <random>

#include "platform/base/error.h"
#include "platform/sim/sim_platform.h"
#include "services/kv/small_store.h"
#include "tests/services/kv/conformance/recording.h"
#include "tests/support/seed.h"

namespace perdura::systems::test {
namespace {

constexpr std::uint32_t kNodes = 4;  // the first is the server
constexpr std::uint32_t kClients = 6;
constexpr std::uint64_t kLanes = 4;
constexpr std::uint64_t kOperationsOfLane = 300;
constexpr std::uint64_t kAllOperations = kClients * kLanes * kOperationsOfLane;
constexpr Picoseconds kPatience = Milliseconds(10);  // with which an operation is waited for
constexpr Bytes kValueSize = 64;
constexpr double kSlowBus = 256e6;  // bytes in a second: four cache lines in a microsecond

// Whatever the platform, the same is run; the simulation is the fastest.
enum class Bus : std::uint8_t { usual, slow };

struct Simulated {
  std::string system;
  Bus bus;
};

std::ostream& operator<<(std::ostream& out, const Simulated& one) { return out << one.system; }

sim::Profile testbed(Bus bus) {
  sim::Profile profile = perdura::test::erda_testbed();
  if (bus == Bus::slow) profile.nic.pcie_bandwidth = kSlowBus;
  return profile;
}

class SmallStores : public testing::TestWithParam<Simulated> {
 protected:
  const kv::KvSystem& system() const { return find_kv_system(GetParam().system); }

  // Throws if no operation ends any more.
  history::History run(const kv::KvConfig& config, std::uint64_t keys, std::uint32_t seed);

 private:
  // Operations of a session one after the other. Refused puts have no effect, which the history
  // shows.
  Task<> lane(kv::KvSession& session, const kv::KvConfig& config, std::uint64_t keys,
              std::uint64_t number, std::uint32_t seed, std::uint64_t& lanes);

  std::uint64_t ended_ = 0;  // operations of a run
};

Task<> SmallStores::lane(kv::KvSession& session, const kv::KvConfig& config, std::uint64_t keys,
                         std::uint64_t number, std::uint32_t seed, std::uint64_t& lanes) {
  constexpr std::uint64_t kAllLanes = kClients * kLanes;
  std::seed_seq of_lane{seed, static_cast<std::uint32_t>(number)};
  std::mt19937_64 random(of_lane);
  Buffer into(config.max_value_size);
  for (std::uint64_t i = 1; i <= kOperationsOfLane; ++i) {
    const std::uint64_t key_number = random() % keys;
    const Buffer key = key_of(key_number, config.key_size);
    const std::uint64_t kind = random() % 10;
    if (kind < 5) {
      const Buffer value = value_of(key_number, i * kAllLanes + number, config.value_size);
      const auto put = co_await session.put(key, value);
      if (!put) {
        EXPECT_EQ(put.error(), kv::Error::out_of_space);
      }
    } else if (kind < 6) {
      const auto erased = co_await session.erase(key);
      if (!erased && erased.error() != kv::Error::not_found) {
        EXPECT_EQ(erased.error(), kv::Error::out_of_space);
      }
    } else {
      const auto got = co_await session.get(key, into);
      if (!got) {
        EXPECT_EQ(got.error(), kv::Error::not_found);
      }
    }
    ++ended_;
  }
  --lanes;
}

history::History SmallStores::run(const kv::KvConfig& config, std::uint64_t keys,
                                  std::uint32_t seed) {
  ended_ = 0;
  sim::SimPlatform platform(testbed(GetParam().bus), kNodes);
  platform.start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto partition = system().open(thread, "pool", config);
    co_await partition->serve();
  });
  Recording recording;
  for (std::uint32_t client = 0; client < kClients; ++client) {
    const auto recorded =
        recording.of([&, client](kv::KvSession& session, Thread& thread) -> Task<> {
          std::uint64_t lanes = kLanes;
          for (std::uint64_t i = 0; i < kLanes; ++i) {
            thread.executor.spawn(lane(session, config, keys, client * kLanes + i, seed, lanes));
          }
          while (lanes > 0) co_await sleep_for(Microseconds(5));
        });
    platform.start(1 + client % (kNodes - 1), static_cast<fabric::Port>(1 + client),
                   CompletionMode::polling, [&, recorded](Thread& thread) -> Task<> {
                     const auto session = co_await system().connect(thread, {0, 0}, config);
                     co_await recorded(*session, thread);
                   });
  }
  platform.start(1, kClients + 1, CompletionMode::polling, [&](Thread&) -> Task<> {
    while (ended_ < kAllOperations) {
      const std::uint64_t before = ended_;
      co_await sleep_for(kPatience);
      if (ended_ == before) throw PlatformError("no operation ends any more");
    }
  });
  platform.run();
  return recording.history();
}

// Few keys, of which each is written again and again, and more than the smallest stores have room
// for.
TEST_P(SmallStores, MakeALinearizableHistory) {
  const std::uint32_t seed = perdura::test::random_seed();
  for (std::size_t number = 0; number < system().small_stores.size(); ++number) {
    for (const std::uint64_t keys : {6, 300}) {
      SCOPED_TRACE(testing::Message() << "small store " << number << ", " << keys
                                      << " keys, PERDURA_TEST_SEED=" << seed);
      kv::KvConfig config{.key_size = 16,
                          .value_size = system().fit_value(kValueSize),
                          .max_value_size = system().fit_value(kValueSize),
                          .records = keys,
                          .writes = kAllOperations,
                          .sessions = kClients,
                          .parameters = {}};
      services::make_small(system(), number, config);
      const auto verdict = history::check(run(config, keys, seed));
      ASSERT_TRUE(verdict.accepted()) << describe(verdict);
      EXPECT_EQ(verdict.operations, kAllOperations);
    }
  }
}

std::vector<Simulated> on(Bus bus) {
  std::vector<Simulated> all;
  for (const kv::KvSystem& system : kv_systems()) all.push_back({std::string(system.name), bus});
  return all;
}

std::string name_of(const testing::TestParamInfo<Simulated>& one) {
  std::string name = one.param.system + "_sim";
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(UsualBus, SmallStores, testing::ValuesIn(on(Bus::usual)), name_of);
INSTANTIATE_TEST_SUITE_P(SlowBus, SmallStores, testing::ValuesIn(on(Bus::slow)), name_of);

}  // namespace
}  // namespace perdura::systems::test
