// What an interval costs, on nodes that say what they have counted.
#include "harness/run/interval_costs.h"

#include <gtest/gtest.h>

namespace perdura::harness {
namespace {

class CountingNode : public Node {
 public:
  explicit CountingNode(NodeId id) : id_(id) {}
  NodeId id() const override { return id_; }
  std::unique_ptr<pmem::Region> create_region(std::string_view, Bytes, pmem::Medium) override {
    return nullptr;
  }
  std::unique_ptr<pmem::Region> open_region(std::string_view) override { return nullptr; }
  void remove_region(std::string_view) override {}
  std::shared_ptr<void> own_region(std::string_view, std::uint32_t) override { return nullptr; }
  std::unique_ptr<BackgroundThread> start_background_thread(std::optional<fabric::Port>,
                                                            CompletionMode) override {
    return nullptr;
  }
  Picoseconds cpu_time() const override { return cpu_; }
  pmem::Writes pm_writes() const override { return writes_; }
  fabric::TrafficByNode traffic() const override { return traffic_; }
  pmem::MemoryUse peak_memory() const override { return memory_; }

  void work(Picoseconds cpu, std::uint64_t bytes) {
    cpu_ += cpu;
    writes_.local_store.bytes_issued += bytes;
  }
  // As the initiator of an operation knows it: what goes to the peer, and what comes back.
  void exchange(NodeId peer, Bytes there, Bytes back) {
    traffic_[id_] += {there, back};
    traffic_[peer] += {back, there};
  }
  void use(pmem::MemoryUse peak) { memory_ = peak; }

 private:
  NodeId id_;
  Picoseconds cpu_{};
  pmem::Writes writes_;
  fabric::TrafficByNode traffic_;
  pmem::MemoryUse memory_;
};

struct Work {
  Picoseconds empty;
  Picoseconds measured;
};

Measurement measure(const std::vector<Work>& nodes, NodeId primaries) {
  IntervalCosts costs(static_cast<NodeId>(nodes.size()), true);
  for (NodeId id = 0; id < nodes.size(); ++id) {
    CountingNode node(id);
    node.work(Picoseconds(1'000'000), 500);  // before
    costs.begin(node);
    node.work(nodes[id].empty, 3);
    costs.end(node, Interval::empty);
    node.work(Picoseconds(70'000), 20);  // between
    costs.begin(node);
    node.work(nodes[id].measured, 10 + id);
    costs.end(node, Interval::measured);
    node.work(Picoseconds(5'000'000), 700);  // after
  }
  Measurement measurement;
  const auto others = static_cast<NodeId>(nodes.size()) - primaries;
  costs.add_to(measurement, Roles({{"primary", primaries}, {"mirror", others}}));
  return measurement;
}

TEST(IntervalCosts, AreThoseOfTheMeasuredIntervalWithoutTheEmptyOne) {
  const std::vector<Work> nodes{{Picoseconds(10), Picoseconds(110)},
                                {Picoseconds(0), Picoseconds(1000)},
                                {Picoseconds(1), Picoseconds(30'001)}};
  const Picoseconds sum(100 + 1000 + 30'000);
  const Picoseconds own[] = {Picoseconds(100), Picoseconds(1000), Picoseconds(30'000)};
  Picoseconds of_primaries{};
  for (NodeId primaries = 1; primaries < nodes.size(); ++primaries) {
    of_primaries += own[primaries - 1];
    const Measurement measured = measure(nodes, primaries);
    EXPECT_EQ(measured.costs_of("primary").cpu, of_primaries);
    EXPECT_EQ(measured.costs_of("mirror").cpu, sum - of_primaries);
    EXPECT_EQ(measured.writes().local_store.bytes_issued, 10U + 11U + 12U);
    EXPECT_EQ(measured.declared.at("mirror_cpu_us_per_op"), to_microseconds(sum - of_primaries));
  }
}

// One node knows what it has exchanged with each peer; the bytes count in the peers' roles, too.
TEST(IntervalCosts, TrafficCountsInTheRolesOfBothEnds) {
  const Roles roles({{"primary", 1}, {"mirror", 2}, {"witness", 1}});
  IntervalCosts costs(roles.node_count(), true);
  CountingNode primary(0);
  primary.exchange(1, 5000, 6000);  // before
  costs.begin(primary);
  primary.exchange(1, 100, 10);
  primary.exchange(2, 1000, 7);
  costs.end(primary, Interval::measured);
  primary.exchange(3, 70, 80);  // after
  CountingNode witness(3);
  costs.begin(witness);
  witness.exchange(0, 3, 20);
  costs.end(witness, Interval::measured);
  Measurement measured;
  costs.add_to(measured, roles);
  const auto traffic = [&](std::string_view role) { return measured.costs_of(role).traffic; };
  EXPECT_EQ(traffic("primary"), (fabric::Traffic{1100 + 20, 17 + 3}));
  EXPECT_EQ(traffic("mirror"), (fabric::Traffic{17, 1100}));
  EXPECT_EQ(traffic("witness"), (fabric::Traffic{3, 20}));
  EXPECT_EQ(measured.declared.at("mirror_received_bytes_per_op"), 1100);
  EXPECT_EQ(measured.declared.at("witness_sent_bytes_per_op"), 3);
}

TEST(IntervalCosts, MemoryIsTheSumOfTheNodesPeaks) {
  const Roles roles({{"primary", 1}, {"mirror", 2}});
  IntervalCosts costs(roles.node_count(), true);
  for (NodeId id = 0; id < roles.node_count(); ++id) {
    CountingNode node(id);
    node.use({10 + id, 1000});  // before the interval counts
    costs.begin(node);
    costs.end(node, Interval::measured);
  }
  Measurement measured;
  costs.add_to(measured, roles);
  EXPECT_EQ(measured.costs_of("primary").peak_memory, (pmem::MemoryUse{10, 1000}));
  EXPECT_EQ(measured.costs_of("mirror").peak_memory, (pmem::MemoryUse{11 + 12, 2000}));
  EXPECT_EQ(measured.declared.at("mirror_dram_peak_bytes"), 23);
  EXPECT_EQ(measured.declared.at("primary_nvm_peak_bytes"), 1000);
}

// A driver may call its roles as it likes.
TEST(IntervalCosts, EveryRoleHasTheSameColumnsUnderItsName) {
  const schema::Schema schema = role_columns(Roles({{"primary", 1}, {"mirror", 2}}));
  for (const std::string role : {"primary", "mirror"}) {
    for (const char* suffix : {"_cpu_us_per_op", "_nvm_bytes_per_op", "_sent_bytes_per_op",
                               "_received_bytes_per_op", "_dram_peak_bytes", "_nvm_peak_bytes"}) {
      const schema::Column* const column = schema.find(role + suffix);
      ASSERT_NE(column, nullptr) << role << suffix;
      EXPECT_NE(column->shown.noun.find(role), std::string_view::npos);
      EXPECT_EQ(column->shown.axis.ends_with(" per operation"),
                std::string_view(suffix).ends_with("_per_op"));
      EXPECT_EQ(column->better, schema::Column::Better::less);
    }
  }
  EXPECT_EQ(schema.quantity("mirror_dram_peak_bytes").axis_with_unit(),
            "Peak DRAM of the mirror (MiB)");
  EXPECT_EQ(schema.quantity("mirror_dram_peak_bytes").scale * 3 * MiB, 3);
}

TEST(IntervalCosts, AreNeverNegative) {
  const Measurement measured = measure({{Picoseconds(11), Picoseconds(10)}}, 1);
  EXPECT_EQ(measured.costs_of("primary").cpu, Picoseconds{});
}

TEST(IntervalCosts, OfNodesThatLiveElsewhereAreNothing) {
  Measurement measurement;
  IntervalCosts(3, true).add_to(measurement, Roles({{"primary", 3}}));
  EXPECT_EQ(measurement.costs_of("primary"), RoleCosts{});
}

}  // namespace
}  // namespace perdura::harness
