// Explorations with any number of servers and clients rely on this: the ports of clients are
// distinct, and a system serves when the last of its servers does.
#include "explore/scenario_processes.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "platform/base/error.h"
#include "tests/explore/soak_support.h"

namespace perdura::explore::test {
namespace {

constexpr Picoseconds kOpening = Microseconds(10);

// Server N takes N + 1 times as long to open what it holds as server 0. The clients run on nodes of
// their own, or on that of server 0.
class SlowServers final : public services::CrashScenario {
 public:
  SlowServers(NodeId servers, std::uint32_t clients, bool share_a_node = false)
      : servers_(servers), clients_(clients), share_a_node_(share_a_node) {}

  NodeId servers() const override { return servers_; }
  std::uint32_t clients() const override { return clients_; }
  std::uint32_t workers() const override { return 2; }
  NodeId node_of_client(std::uint32_t number) const override {
    return share_a_node_ ? 0 : CrashScenario::node_of_client(number);
  }
  Task<> serve(Thread& thread) override {
    if (thread.endpoint.address().port > 0) co_return;
    co_await sleep_for((1 + thread.node.id()) * kOpening);
    note_serving(thread);
  }
  std::uint64_t planned_calls(std::size_t) const override { return 0; }  // it is not generated
  Task<> use(Thread&, std::uint32_t) override { co_return; }
  Task<> inspect(Thread&) override { co_return; }
  services::Verdict judge(std::span<const services::ServerFailure>,
                          const services::ToJudge&) const override {
    return {};
  }

 protected:
  void snapshot_observations() override {}
  void restore_observations() override {}
  std::string observations_since_snapshot() const override { return {}; }

 private:
  NodeId servers_;
  std::uint32_t clients_;
  bool share_a_node_;
};

TEST(Servers, ClientsNeverShareAPort) {
  constexpr std::uint32_t kStarts = 6;  // the most that a generated run has
  for (const std::uint32_t clients : {1, 2, 63, 64, 65, 300}) {
    for (const bool share_a_node : {false, true}) {
      const SlowServers scenario(3, clients, share_a_node);
      std::set<std::pair<NodeId, fabric::Port>> used;
      for (NodeId node = 0; node < scenario.servers(); ++node) {
        for (std::uint32_t worker = 0; worker < scenario.workers(); ++worker) {
          used.emplace(node, static_cast<fabric::Port>(worker));
        }
      }
      const std::size_t workers = used.size();
      for (std::uint32_t start = 0; start < kStarts; ++start) {
        for (std::uint32_t client = 0; client < clients; ++client) {
          used.emplace(scenario.node_of_client(client), port_of_client(scenario, client, start));
        }
      }
      EXPECT_EQ(used.size(), workers + kStarts * clients) << clients << " clients";
    }
  }
}

TEST(Servers, AClientWithoutAPortOfItsOwnIsRefused) {
  for (const bool share_a_node : {false, true}) {
    const SlowServers many(1, 20'000, share_a_node);
    EXPECT_NO_THROW(port_of_client(many, 0));
    EXPECT_THROW(port_of_client(many, 19'999), UsageError);
    EXPECT_THROW(port_of_client(many, 0, 1), UsageError);
    const SlowServers few(1, 2, share_a_node);
    EXPECT_THROW(port_of_client(few, 2), UsageError);
  }
}

// True for each time between two at which a server begins to serve if the system serves then.
std::vector<bool> serves_in_turn(ScenarioProcesses& run, const SlowServers& scenario) {
  std::vector<bool> serves;
  const auto look = [&](Thread& thread) -> Task<> {
    co_await sleep_for(kOpening / 2);
    for (NodeId turn = 0; turn <= scenario.servers(); ++turn) {
      serves.push_back(scenario.serves(thread.executor.now()));
      co_await sleep_for(kOpening);
    }
  };
  run.platform().start(run.inspector(), 0, CompletionMode::polling, look);
  run.run();
  return serves;
}

TEST(Servers, ASystemServesWhenItsLastServerDoes) {
  SlowServers scenario(3, 1);
  {
    ScenarioProcesses run(scenario, soaked_testbed(), 0);
    run.start_servers();
    EXPECT_EQ(serves_in_turn(run, scenario), (std::vector<bool>{false, false, false, true}));
  }
  const Time late = Time() + 100 * kOpening;
  EXPECT_TRUE(scenario.serves(late));
  // One of them fails alone, and the others go on: the system serves when that one is back.
  scenario.stop_serving(1);
  EXPECT_FALSE(scenario.serves(late));
  {
    ScenarioProcesses run(scenario, soaked_testbed(), 0);
    run.start_server(1);
    serves_in_turn(run, scenario);
  }
  EXPECT_TRUE(scenario.serves(late));
  scenario.stop_serving();
  EXPECT_FALSE(scenario.serves(late));
}

}  // namespace
}  // namespace perdura::explore::test
