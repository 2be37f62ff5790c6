// The server's power fails at every moment of a small history, and is back at once: after recovery
// the store holds what exploration has found that its system guarantees, and takes writes.
#include "explore/explored.h"
#include "platform/sim/failures.h"
#include "services/kv/service.h"
#include "systems/registry/registry.h"
#include "tests/support/explore.h"
#include "tests/systems/faults/history.h"

namespace perdura::systems::test {
namespace {

using perdura::sim::Explored;
using perdura::sim::ExploreOptions;
using perdura::sim::Failure;
using perdura::sim::Images;
using perdura::test::explore_until_failure;
using pmem::PersistenceDomain;
using pmem::PersistenceModel;

constexpr std::uint64_t kKeys = 4;  // the first two are the first client's, the others the second's

struct Step {
  std::uint64_t key;
  std::uint64_t version;  // 0 erases
};
// Creations, updates, a deletion and a creation after it.
constexpr std::array<Step, 12> kSteps{{{0, 1},
                                       {1, 1},
                                       {0, 2},
                                       {0, 3},
                                       {1, 0},
                                       {1, 4},
                                       {0, 5},
                                       {0, 6},
                                       {0, 0},
                                       {1, 7},
                                       {0, 8},
                                       {1, 9}}};

// What was found that a system guarantees, and the setting in which it guarantees most. Of an
// acknowledged operation:
//   durable  it is there
//   ordered  it is there, or else the version before it
//   atomic   some version that was written is there, or none
struct Guaranteed {
  services::GuaranteeLevel level = services::GuaranteeLevel::none;
  explore::ExploredSetting setting;
};

class PowerOfTheServer : public testing::TestWithParam<Subject> {
 protected:
  const kv::KvSystem& system() const { return find_kv_system(GetParam().system); }

  // Of the settings of the system itself: as published unless another one guarantees more.
  Guaranteed guaranteed(PersistenceModel model) const {
    const services::SystemInfo info = services::info_of(system());
    Guaranteed most;
    for (const explore::ExploredSetting& setting : explore::explored_settings(info)) {
      if (setting.correct) continue;
      const auto level =
          explore::explored_level(info, setting.parameters, false, std::span(&model, 1));
      if (level && *level > most.level) most = {*level, setting};
    }
    return most;
  }

  kv::KvConfig config(const Guaranteed& guaranteed) const {
    kv::KvConfig config = small_config(system());
    for (const auto& [name, value] : guaranteed.setting.parameters) config.parameters[name] = value;
    return config;
  }

  enum class Times : std::uint8_t { once, twice };
  Explored fail_everywhere(PersistenceModel model, const ExploreOptions& options,
                           Times times = Times::once);
  void check(PersistenceModel model);
};

INSTANTIATE_TEST_SUITE_P(All, PowerOfTheServer, testing::ValuesIn(systems_on_sim()), subject_name);

std::set<std::uint64_t> allowed(const Known& key, services::GuaranteeLevel level) {
  using services::GuaranteeLevel;
  std::set<std::uint64_t> versions{key.acknowledged, key.uncertain};
  if (level == GuaranteeLevel::ordered) versions.insert(key.before);
  if (level == GuaranteeLevel::atomic) {
    for (std::uint64_t version = 0; version <= key.uncertain; ++version) versions.insert(version);
    for (const Step& step : kSteps) versions.insert(step.version);
  }
  return versions;
}

Explored PowerOfTheServer::fail_everywhere(PersistenceModel model, const ExploreOptions& options,
                                           Times times) {
  int runs = 0;
  const Guaranteed guaranteed = this->guaranteed(model);
  return explore_until_failure(options, [&](Failure& failure) {
    SCOPED_TRACE(failure.text());
    const auto made = perdura::test::make_platform("sim", 4);
    auto& platform = static_cast<perdura::sim::SimPlatform&>(*made);
    platform.track_durability(model);
    std::array<Known, kKeys> known{};
    int clients = 2;

    auto server = [&](Thread& thread) -> Task<> {
      const auto partition = system().open(thread, "pool", config(guaranteed));
      co_await partition->serve();
    };
    auto client = [&](std::uint64_t first) {
      return [&, first](Thread& thread) -> Task<> {
        const auto session = co_await try_connect(system(), thread);
        for (const Step& step : kSteps) {
          if (session == nullptr) break;
          Known& key = known[first + step.key];
          key.begin(step.version);
          const auto done =
              co_await write_version(system(), *session, first + step.key, step.version);
          if (!done) {
            EXPECT_EQ(done.error(), kv::Error::disconnected);
            break;
          }
          key.end();
        }
        --clients;
      };
    };
    auto reader = [&](Thread& thread) -> Task<> {
      while (clients > 0) co_await sleep_for(Microseconds(50));
      const auto session = co_await system().connect(thread, {0, 0}, small_config(system()));
      for (std::uint64_t number = 0; number < kKeys; ++number) {
        const auto found = co_await version_in(*session, number);
        const Known& key = known[number];
        EXPECT_TRUE(found && allowed(key, guaranteed.level).contains(*found))
            << "key " << number << " has version " << found.value_or(999) << ", acknowledged "
            << key.acknowledged << ", before " << key.before << ", uncertain " << key.uncertain;
        EXPECT_EQ(co_await version_in(*session, number), found) << "key " << number << ", again";
      }
      co_await write_all(system(), *session, kKeys, 1000);
    };

    platform.start_service(0, 0, CompletionMode::polling, server);
    platform.start(1, 1, CompletionMode::polling, client(0));
    platform.start(2, 2, CompletionMode::polling, client(2));
    failure.watch(platform, [&](pmem::Choices& choices) {
      platform.fail_power(0, choices);
      platform.start_service(0, 0, CompletionMode::polling, server);
      if (times == Times::once) {
        platform.start(3, 3, CompletionMode::polling, reader);
        return;
      }
      // Again, from at once to some time after the recovery.
      const Time again = platform.engine().now() + Nanoseconds(runs++ * 617 % 30'000);
      platform.start(3, 2, CompletionMode::polling,
                     [again](Thread&) -> Task<> { co_await sleep_until(again); });
      platform.at(again, [&] {
        platform.fail_power(0, choices);
        platform.start_service(0, 0, CompletionMode::polling, server);
        platform.start(3, 3, CompletionMode::polling, reader);
      });
    });
    platform.run();
  });
}

#define SKIP_UNLESS_GUARANTEED(model)                             \
  if (guaranteed(model).level < services::GuaranteeLevel::atomic) \
  GTEST_SKIP() << "exploration found that nothing is guaranteed there"

void PowerOfTheServer::check(PersistenceModel model) {
  SKIP_UNLESS_GUARANTEED(model);
  Explored explored;
  std::uint64_t runs = 0;
  for (ExploreOptions options :
       {ExploreOptions{.images = Images::least}, ExploreOptions{.images = Images::most},
        ExploreOptions{.images = Images::random, .seed = 1},
        ExploreOptions{.images = Images::random, .seed = 2}}) {
    options.before = &explored;
    explored = fail_everywhere(model, options);
    runs += explored.runs;
    if (HasFailure()) return;
  }
  std::cout << GetParam() << ", " << to_string(model.domain) << (model.ddio ? ", DDIO" : "") << ": "
            << explored.crash_points << " moments, " << runs << " failures\n";
  EXPECT_GT(explored.crash_points, 300U);
}

TEST_P(PowerOfTheServer, FailsAnywhereWithPersistentCaches) {
  check({PersistenceDomain::mhp, true});
}

TEST_P(PowerOfTheServer, FailsAnywhereWithVolatileCachesWithoutDdio) {
  check({PersistenceDomain::dmp, false});
}

TEST_P(PowerOfTheServer, FailsAgainWhileItRecovers) {
  SKIP_UNLESS_GUARANTEED((PersistenceModel{PersistenceDomain::dmp, false}));
  std::uint64_t runs = 0;
  for (const std::uint64_t seed : {1, 2}) {
    runs += fail_everywhere({PersistenceDomain::dmp, false},
                            {.images = Images::random, .seed = seed}, Times::twice)
                .runs;
    runs +=
        fail_everywhere({PersistenceDomain::dmp, false}, {.images = Images::least}, Times::twice)
            .runs;
  }
  std::cout << GetParam() << ": " << runs << " double failures\n";
}

// Not only some images of each moment, but all, or the first 100 of them.
TEST_P(PowerOfTheServer, EveryImageOfAMomentIsRecovered) {
  SKIP_UNLESS_GUARANTEED((PersistenceModel{PersistenceDomain::dmp, false}));
  const Explored explored = fail_everywhere(
      {PersistenceDomain::dmp, false}, {.images = Images::all, .stride = 5, .most_images = 100});
  std::cout << GetParam() << ": " << explored.tried << " of " << explored.crash_points
            << " moments, " << explored.runs << " images, " << explored.cut_short
            << " moments with more\n";
  EXPECT_GT(explored.runs, explored.tried);
}

TEST_P(PowerOfTheServer, FailsAnywhereWithVolatileCachesAndDdio) {
  check({PersistenceDomain::dmp, true});
}

}  // namespace
}  // namespace perdura::systems::test
