// Recovery after the death of a process finds what is visible, not what is durable
// (docs/restart.md). At every moment of a history the servers' processes die and are started again
// at once; the clients go on, and the power fails some time later, or as soon as they were told
// something. The process of one server may die alone; where a copy then takes its place, the
// clients go on with that one, which fails in the middle of that, and is used again.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explore/crash.h"
#include "explore/scenario_processes.h"
#include "explore/soak.h"
#include "platform/base/error.h"
#include "platform/sim/failures.h"
#include "systems/registry/registry.h"
#include "tests/support/platforms.h"

namespace perdura::explore::test {
namespace {

using services::GuaranteeLevel;

const sim::Profile& restarted_testbed() {
  static const sim::Profile profile =
      sim::load_profile(perdura::test::profile_path("erda-connectx3"));
  return profile;
}

// A death of processes and the power failure that follows it: `later`, or when operations of the
// restarted servers' clients have begun or ended `changes` times, whichever comes first.
struct Failures {
  bool of_one = false;  // the server that clients share, or the first one
  Picoseconds later{};
  std::uint64_t changes = ~std::uint64_t{0};
};

using Events = std::map<std::string, std::uint64_t, std::less<>>;

class DeathAndPowerFailure {
 public:
  // The power failure's image is the one that keeps least.
  DeathAndPowerFailure(const SoakCase& one, std::uint64_t seed, const Failures& planned)
      : expected_(one.expected),
        planned_(planned),
        tape_(seed),
        scenario_(
            one.system.service->generated_scenario(one.system.info.name, one.setup(), tape_, 2)),
        run_(*scenario_,
             with_commits_if_needed(restarted_testbed(), one.system.info, one.setting.parameters),
             scenario_->clients()),
        platform_(run_.platform()) {
    platform_.track_durability(one.model);
    run_.note_problems();
  }

  // What is lost of the level that is expected; empty if nothing is.
  std::string run(sim::Failure& failure) {
    if (scenario_->prepares()) {
      failure.enable(false);
      scenario_->when_prepared([&failure] { failure.enable(true); });
    }
    start(run_.servers());
    failure.watch(platform_, [this](pmem::Choices&) {
      die();
      run_.start_inspector([this] { return failed_at_ && scenario_->clients_at_work() == 0; });
      platform_.at(platform_.engine().now() + planned_.later, [this] { fail_power(); });
      scenario_->watch([this, changes = std::uint64_t{0}]() mutable {
        if (++changes != planned_.changes) return;
        platform_.at(Executor::current().now(), [this] { fail_power(); });
      });
    });
    run_.run();
    return failure.happened() ? loss() : "";
  }
  Events events() const { return scenario_->events(); }

 private:
  void die() {
    services::ServerFailure death{platform_.engine().now()};
    std::vector<NodeId> dying = run_.servers();
    if (planned_.of_one && dying.size() > 1) {
      const NodeId of_clients = scenario_->node_of_client(0);
      death.alone = of_clients < scenario_->servers() ? of_clients : 0;
      dying = {*death.alone};
    }
    scenario_->note_failure(death);
    if (scenario_->loses_with_processes()) losing_failures_.push_back(death);
    for (const NodeId node : dying) platform_.kill(node);
    start(dying);
  }

  void start(const std::vector<NodeId>& servers) {
    for (const NodeId node : servers) run_.start_server(node);
    for (std::uint32_t client = 0; client < scenario_->clients(); ++client) {
      run_.start_client(client, starts_);
    }
    ++starts_;
  }

  void fail_power() {
    if (failed_at_) return;
    failed_at_ = platform_.engine().now();
    losing_failures_.push_back({*failed_at_});
    scenario_->note_failure(losing_failures_.back());
    pmem::LeastChoices least;
    platform_.fail_power(run_.servers(), least);
    start(run_.servers());
    constexpr Picoseconds kPatience = std::chrono::seconds(2);
    platform_.at(*failed_at_ + kPatience, [this] {
      scenario_->note_problem("the system does not answer any more");
      for (NodeId node = 0; node < platform_.node_count(); ++node) platform_.kill(node);
    });
  }

  std::string loss() const {
    if (!failed_at_) return "the power did not fail";
    return scenario_->judge(losing_failures_, services::ToJudge::all()).loss_of(expected_).why;
  }

  GuaranteeLevel expected_;
  Failures planned_;
  pmem::Tape tape_;
  std::unique_ptr<services::CrashScenario> scenario_;
  std::uint32_t starts_ = 0;
  std::optional<Time> failed_at_;
  std::vector<services::ServerFailure> losing_failures_;
  // Declared last, so destroyed first: its threads use the members above.
  ScenarioProcesses run_;
  sim::SimPlatform& platform_;
};

class Restarted : public testing::TestWithParam<services::ServedSystem> {};

// A history of more moments is not explored at more of them than this.
constexpr std::uint64_t kMostDeaths = 160;

// Explores moments at which the process dies, each `stride`-th one, until one loses something.
// Returns how many were tried, and adds what happened.
std::uint64_t explore_deaths(const SoakCase& one, std::uint64_t seed, std::uint64_t stride,
                             Events& happened) {
  struct Found {};
  Failures planned{.of_one = seed % 4 >= 2, .later = Microseconds(seed % 2 == 0 ? 120 : 30)};
  // An operation has ended, and another one has begun.
  if (seed % 3 == 2) planned.changes = 3;
  const std::size_t moments = sim::list_crash_points([&](sim::Failure& failure) {
                                DeathAndPowerFailure(one, seed, planned).run(failure);
                              }).size();
  stride = std::max(stride, moments / kMostDeaths);
  // All histories begin alike, with the making of the store, so they try different moments.
  sim::ExploreOptions options{.first = seed / 2 % stride, .stride = stride};
  options.progress = [](std::uint64_t, std::uint64_t) {
    if (testing::Test::HasFailure()) throw Found();
  };
  try {
    return sim::explore_failures(options,
                                 [&](sim::Failure& failure) {
                                   DeathAndPowerFailure run(one, seed, planned);
                                   const std::string loss = run.run(failure);
                                   for (const auto& [name, count] : run.events())
                                     happened[name] += count;
                                   EXPECT_EQ(loss, "")
                                       << one.name() << ", history " << seed
                                       << ", the process dies at " << failure.text();
                                 })
        .tried;
  } catch (const Found&) {
    return 0;
  }
}

TEST_P(Restarted, KeepsItsLevelWhenThePowerFailsNext) {
  constexpr std::uint64_t kHistories = 9;
  std::uint64_t tried = 0;
  bool promises = false;
  Events happened;
  for (const SoakCase& one : soak_cases({GetParam()}, restarted_testbed())) {
    if (one.model != pmem::PersistenceModel{pmem::PersistenceDomain::dmp, true}) continue;
    if (one.expected == GuaranteeLevel::none) continue;
    promises = true;
    for (std::uint64_t seed = 1; seed <= kHistories; ++seed) {
      // The first histories are short.
      tried += explore_deaths(one, seed, seed <= 3 ? 2 : 7, happened);
      if (HasFailure()) return;
    }
  }
  if (!promises) GTEST_SKIP() << "it promises nothing that could be lost";
  EXPECT_GT(tried, 200U);
}

// The same with fewer moments, of the system of each service that has the most servers.
TEST(RestartedOnce, EachServiceKeepsItsLevelWhenThePowerFailsNext) {
  constexpr pmem::PersistenceModel kServer{pmem::PersistenceDomain::dmp, true};
  for (const services::Service* service : systems::all_services()) {
    std::optional<SoakCase> chosen;
    for (const services::SystemInfo& info : service->systems()) {
      for (const SoakCase& one : soak_cases({{service, info}}, restarted_testbed())) {
        const bool promises = one.model == kServer && one.expected == GuaranteeLevel::durable;
        if (promises && !chosen) chosen = one;
      }
    }
    ASSERT_TRUE(chosen) << service->name();
    Events happened;
    std::uint64_t tried = 0;
    for (const std::uint64_t seed : {1, 2, 3, 6, 7, 10}) {
      tried += explore_deaths(*chosen, seed, 29, happened);
      if (HasFailure()) return;
    }
    EXPECT_GT(tried, 20U) << service->name();
    for (const std::string_view event :
         {"sync points on a copy that was promoted", "failures of a copy that was promoted"}) {
      const auto found = happened.find(event);
      if (found != happened.end()) {
        EXPECT_GT(found->second, 10U) << event;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Systems, Restarted, testing::ValuesIn(systems::all_systems()),
                         [](const auto& one) {
                           std::string name(one.param.info.name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace perdura::explore::test
