// Life after a failure: the process that serves a file system dies at each moment of random
// operations, is started again and works on, and then the power fails, in the middle of another
// operation. What recovery has built upon is needed then: if it was in caches only, what was there
// for hours is lost. If the file system has servers, all of them fail, and the client with them.
//
// Some of what a system does happens in few operations, such as taking a page out of the middle of
// a log. So there are also lives in which the process dies at each moment of an operation that does
// it, for each of the system's events that are rare.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "platform/sim/sim_platform.h"
#include "systems/registry/registry.h"
#include "tests/services/fs/random_operations.h"
#include "tests/support/explore.h"
#include "tests/support/platforms.h"
#include "tests/support/seed.h"

namespace perdura::fs::test {
namespace {

// The operations in which the process dies: `tried` ones, after so many others.
struct Stretch {
  int before = 0;
  int tried = 0;
};

// What one file system lives through.
class Life {
 public:
  Life(const FsSystem& system, std::uint64_t seed, Stretch stretch, sim::Failure& failure)
      : home_(system, config_of(system, true)),
        seed_(seed),
        stretch_(stretch),
        random_(seed + failure.number()),
        failure_(failure),
        platform_(perdura::test::erda_testbed(), nodes_for(system, 1)) {
    platform_.track_durability({pmem::PersistenceDomain::dmp, false});
  }

  // The process dies where `failure` says.
  void run() {
    failure_.enable(false);
    home_.start(platform_);
    platform_.start(home_.client(0), 0, CompletionMode::polling,
                    [this](Thread& thread) { return begin(thread); });
    failure_.watch(platform_, [this](pmem::Choices&) {
      for (NodeId node = platform_.node_count(); node-- > 0;) platform_.kill(node);
      go_on([this](Thread& thread) { return work_until_the_power_fails(thread); });
    });
    platform_.run();
    EXPECT_EQ(failure_.happened(), has_ended_);
  }

 private:
  // Ends with a process and forgets the contents of its DRAM, after the operation that uses them.
  struct Process {
    std::optional<RandomOperations>& operations;
    ~Process() {
      if (operations) operations->die();
    }
  };

  Task<> begin(Thread& thread) {
    const Process process{operations_};
    operations_.emplace(thread, home_, seed_);
    co_await operations_->begin();
    co_await work(stretch_.before);
    failure_.enable(true);
    co_await work(stretch_.tried);
  }

  Task<> work(int count) {
    for (int i = 0; i < count; ++i) {
      before_ = operations_->model();
      has_returned_ = false;
      co_await operations_->step();
      // What the operation has done takes until then.
      co_await sleep_for(Nanoseconds(1));
      has_returned_ = true;
    }
  }

  void go_on(std::function<Task<>(Thread&)> body) {
    home_.start(platform_);
    platform_.start(home_.client(0), 0, CompletionMode::polling,
                    [this, body = std::move(body)](Thread& thread) -> Task<> {
                      const Process process{operations_};
                      co_await operations_->start_again(thread, before_, has_returned_);
                      co_await sleep_for(Nanoseconds(1));
                      has_returned_ = true;
                      co_await body(thread);
                    });
  }

  Task<> work_until_the_power_fails(Thread& thread) {
    constexpr int kLeast = 60;
    co_await work(kLeast + static_cast<int>(random_() % 60));
    platform_.at(thread.executor.now() + Nanoseconds(random_() % 4000), [this] {
      pmem::LeastChoices least;
      std::vector<NodeId> nodes(platform_.node_count());
      std::iota(nodes.begin(), nodes.end(), NodeId{0});
      platform_.fail_power(nodes, least);
      go_on([this](Thread&) -> Task<> {
        co_await work(5);
        has_ended_ = true;
      });
    });
    co_await work(1000);
  }

  Home home_;
  const std::uint64_t seed_;
  const Stretch stretch_;
  std::mt19937_64 random_;
  sim::Failure& failure_;
  std::optional<RandomOperations> operations_;
  Model before_;
  bool has_returned_ = true;
  bool has_ended_ = false;
  // Declared last, so destroyed first: its threads use the members above.
  sim::SimPlatform platform_;
};

std::uint64_t explore_lives(const FsSystem& system, std::uint32_t seed, Stretch operations,
                            std::uint64_t stride) {
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  const sim::Explored explored = perdura::test::explore_until_failure(
      {.first = seed % stride, .stride = stride}, [&](sim::Failure& failure) {
        SCOPED_TRACE(failure.text());
        Life(system, seed, operations, failure).run();
      });
  return explored.tried;
}

// One that happens in more of the first operations is met by any life.
constexpr int kFirst = 500;
constexpr std::size_t kMostOfARareEvent = kFirst / 20;

// By event of the system: those of the first operations with this seed in which it happens.
std::vector<std::vector<int>> operations_with_events(const FsSystem& system, std::uint32_t seed) {
  std::vector<std::vector<int>> found(system.events.size());
  Home home(system, config_of(system, true));
  sim::SimPlatform platform(perdura::test::erda_testbed(), nodes_for(system, 1));
  home.start(platform);
  platform.start(home.client(0), 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    RandomOperations operations(thread, home, seed);
    co_await operations.begin();
    std::vector<std::uint64_t> before = co_await operations.events_of_this_mount();
    for (int i = 0; i < kFirst; ++i) {
      co_await operations.step();
      const std::vector<std::uint64_t> after = co_await operations.events_of_this_mount();
      for (std::size_t event = 0; event < found.size(); ++event) {
        if (after[event] > before[event]) found[event].push_back(i);
      }
      before = after;
    }
  });
  platform.run();
  return found;
}

class FsLife : public testing::TestWithParam<std::string> {};
class FsLongLife : public FsLife {};

void expect_to_live(const std::string& name, int histories, std::uint64_t stride) {
  constexpr Stretch kUsual{.before = 120,  // until logs have several pages, and are collected
                           .tried = 8};
  const std::uint32_t seed = perdura::test::random_seed();
  const FsSystem& system = systems::find_fs_system(name);
  std::uint64_t tried = 0;
  for (int i = 0; i < histories && !testing::Test::HasFailure(); ++i) {
    tried += explore_lives(system, seed + static_cast<std::uint32_t>(i), kUsual, stride);
  }
  testing::Test::RecordProperty("tried", static_cast<int>(tried));
  // Each at several moments.
  EXPECT_TRUE(testing::Test::HasFailure() || tried > 2 * static_cast<std::uint64_t>(histories));
}

// `moments`: so many at least for each rare event, in as many operations as it takes.
void expect_to_live_after_rare_events(const std::string& name, std::uint64_t moments) {
  const std::uint32_t first = perdura::test::random_seed();
  const FsSystem& system = systems::find_fs_system(name);
  std::vector<std::uint64_t> tried(system.events.size());
  const auto is_open = [&](std::size_t event) {
    return !system.events[event].in_recovery && tried[event] < moments;
  };
  const std::uint32_t most_seeds = 50 + static_cast<std::uint32_t>(moments);
  for (std::uint32_t seed = first; !testing::Test::HasFailure(); ++seed) {
    std::size_t event = 0;
    while (event < tried.size() && !is_open(event)) ++event;
    if (event == tried.size()) break;
    ASSERT_LT(seed, first + most_seeds) << "too few " << system.events[event].name;
    const std::vector<std::vector<int>> operations = operations_with_events(system, seed);
    for (; event < tried.size(); ++event) {
      if (!is_open(event) || operations[event].empty()) continue;
      if (operations[event].size() > kMostOfARareEvent) {
        tried[event] = moments;
        continue;
      }
      SCOPED_TRACE(system.events[event].name);
      // The middle one: until then the file system has become old enough.
      const int operation = operations[event][operations[event].size() / 2];
      // An operation that stores nothing, as one that a client does by itself, has no moments.
      tried[event] += std::max<std::uint64_t>(
          explore_lives(system, seed, {.before = operation, .tried = 1}, 1), 1);
    }
  }
}

TEST_P(FsLife, GoesOnAfterADeathAndAPowerFailure) { expect_to_live(GetParam(), 8, 11); }
TEST_P(FsLife, GoesOnAfterADeathInEachRareEvent) {
  expect_to_live_after_rare_events(GetParam(), 100);
}
TEST_P(FsLongLife, GoesOnAfterADeathAndAPowerFailure) { expect_to_live(GetParam(), 60, 1); }
TEST_P(FsLongLife, GoesOnAfterADeathInEachRareEvent) {
  expect_to_live_after_rare_events(GetParam(), 1500);
}

std::vector<std::string> system_names() {
  std::vector<std::string> all;
  for (const FsSystem& system : systems::fs_systems()) all.emplace_back(system.info.name);
  return all;
}
std::string plain_name(const testing::TestParamInfo<std::string>& one) {
  std::string name = one.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Systems, FsLife, testing::ValuesIn(system_names()), plain_name);
INSTANTIATE_TEST_SUITE_P(Systems, FsLongLife, testing::ValuesIn(system_names()), plain_name);

}  // namespace
}  // namespace perdura::fs::test
