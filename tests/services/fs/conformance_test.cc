// Every file system does what the specification does: the same random operations on both, with the
// same results, the same trees, and nothing lost when it is mounted again, after it was unmounted
// or after its process died.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "systems/registry/registry.h"
#include "tests/services/fs/random_operations.h"
#include "tests/support/platforms.h"
#include "tests/support/seed.h"

namespace perdura::fs::test {
namespace {

struct Subject {
  std::string platform;
  const FsSystem* system;
  bool is_small;
};

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const FsSystem& system : systems::fs_systems()) {
    for (const std::string& platform : perdura::test::platform_names()) {
      for (const bool is_small : {false, true}) all.push_back({platform, &system, is_small});
    }
  }
  return all;
}

class FsConformance : public testing::TestWithParam<Subject> {
 protected:
  void run(const std::function<Task<>(Thread&)>& body) {
    const auto platform = perdura::test::make_platform(GetParam().platform, 1);
    platform->start(0, 0, CompletionMode::polling, body);
    platform->run();
  }
};

TEST_P(FsConformance, RandomOperationsDoWhatTheModelDoes) {
  const std::uint32_t first = perdura::test::random_seed();
  std::vector<std::uint64_t> events;
  for (std::uint32_t seed = first; seed < first + 6 && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
    run([&](Thread& thread) -> Task<> {
      const FsSystem& system = *GetParam().system;
      RandomOperations operations(thread, system, config_of(system, GetParam().is_small), seed);
      co_await operations.begin();
      for (int round = 0; round < 30 && !testing::Test::HasFailure(); ++round) {
        for (int i = 0; i < 40 && !testing::Test::HasFailure(); ++i) {
          co_await operations.step();
          co_await yield();
        }
        co_await operations.check();
        if (testing::Test::HasFailure() || round % 3 == 0) continue;
        co_await operations.mount_again(round % 3 == 1);
        co_await operations.check();
      }
      EXPECT_GT(operations.succeeded() * 5, operations.done()) << "most of it has been refused";
      const std::vector<std::uint64_t>& counts = operations.events();
      events.resize(counts.size());
      for (std::size_t i = 0; i < counts.size(); ++i) events[i] += counts[i];
    });
  }
  if (!GetParam().is_small || HasFailure()) return;
  // What a failure in the middle of an operation causes is explored elsewhere.
  for (std::size_t i = 0; i < events.size(); ++i) {
    const services::Event& event = GetParam().system->events[i];
    EXPECT_TRUE(events[i] > 0 || event.in_recovery) << "there were no " << event.name;
  }
}

std::string name_of(const testing::TestParamInfo<Subject>& info) {
  std::string name = std::string(info.param.system->info.name) +
                     (info.param.is_small ? "_small_" : "_") + info.param.platform;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, FsConformance, testing::ValuesIn(subjects()), name_of);

}  // namespace
}  // namespace perdura::fs::test
