// Life after a failure: the process that serves a file system dies at each moment of random
// operations, is started again and works on, and then the power fails, in the middle of another
// operation. What recovery has built upon is needed then: if it was in caches only, what was there
// for hours is lost.
#include <gtest/gtest.h>

#include <algorithm>

#include "platform/sim/sim_platform.h"
#include "systems/registry/registry.h"
#include "tests/services/fs/random_operations.h"
#include "tests/support/explore.h"
#include "tests/support/platforms.h"
#include "tests/support/seed.h"

namespace perdura::fs::test {
namespace {

// What one file system lives through.
class Life {
 public:
  Life(const FsSystem& system, std::uint64_t seed, sim::Failure& failure)
      : system_(system),
        seed_(seed),
        random_(seed),
        failure_(failure),
        platform_(perdura::test::erda_testbed(), 1) {
    platform_.track_durability({pmem::PersistenceDomain::dmp, false});
  }

  // The process dies where `failure` says.
  void run() {
    failure_.enable(false);
    platform_.start(0, 0, CompletionMode::polling,
                    [this](Thread& thread) { return begin(thread); });
    failure_.watch(platform_, [this](pmem::Choices&) {
      platform_.kill(0);
      go_on([this](Thread& thread) { return work_until_the_power_fails(thread); });
    });
    platform_.run();
    EXPECT_EQ(failure_.happened(), has_ended_);
  }

 private:
  Task<> begin(Thread& thread) {
    constexpr int kBefore = 120;  // until logs have several pages, and are collected
    constexpr int kTried = 8;
    operations_.emplace(thread, system_, config_of(system_, true), seed_);
    co_await operations_->begin();
    co_await work(kBefore);
    failure_.enable(true);
    co_await work(kTried);
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
    operations_->die();
    platform_.start(0, 0, CompletionMode::polling,
                    [this, body = std::move(body)](Thread& thread) -> Task<> {
                      co_await operations_->start_again(thread, before_, has_returned_);
                      co_await sleep_for(Nanoseconds(1));
                      has_returned_ = true;
                      co_await body(thread);
                    });
  }

  Task<> work_until_the_power_fails(Thread& thread) {
    co_await work(static_cast<int>(random_() % 60));
    platform_.at(thread.executor.now() + Nanoseconds(random_() % 4000), [this] {
      pmem::LeastChoices least;
      platform_.fail_power(0, least);
      go_on([this](Thread&) -> Task<> {
        co_await work(5);
        has_ended_ = true;
      });
    });
    co_await work(1000);
  }

  const FsSystem& system_;
  const std::uint64_t seed_;
  std::mt19937_64 random_;
  sim::Failure& failure_;
  std::optional<RandomOperations> operations_;
  Model before_;
  bool has_returned_ = true;
  bool has_ended_ = false;
  // Declared last, so destroyed first: its threads use the members above.
  sim::SimPlatform platform_;
};

std::uint64_t explore_lives(const FsSystem& system, std::uint32_t seed, std::uint64_t stride) {
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  const sim::Explored explored = perdura::test::explore_until_failure(
      {.first = seed % stride, .stride = stride}, [&](sim::Failure& failure) {
        SCOPED_TRACE(failure.text());
        Life(system, seed, failure).run();
      });
  return explored.tried;
}

class FsLife : public testing::TestWithParam<std::string> {};
class FsLongLife : public FsLife {};

void expect_to_live(const std::string& name, int histories, std::uint64_t stride) {
  const std::uint32_t seed = perdura::test::random_seed();
  const FsSystem& system = systems::find_fs_system(name);
  std::uint64_t tried = 0;
  for (int i = 0; i < histories && !testing::Test::HasFailure(); ++i) {
    tried += explore_lives(system, seed + static_cast<std::uint32_t>(i), stride);
  }
  testing::Test::RecordProperty("tried", static_cast<int>(tried));
  EXPECT_TRUE(testing::Test::HasFailure() || tried > 50);
}

TEST_P(FsLife, GoesOnAfterADeathAndAPowerFailure) { expect_to_live(GetParam(), 8, 11); }
TEST_P(FsLongLife, GoesOnAfterADeathAndAPowerFailure) { expect_to_live(GetParam(), 60, 1); }

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
