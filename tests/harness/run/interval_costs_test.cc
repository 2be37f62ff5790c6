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
  std::unique_ptr<BackgroundThread> start_background_thread(std::optional<fabric::Port>) override {
    return nullptr;
  }
  Picoseconds cpu_time() const override { return cpu_; }
  pmem::Writes pm_writes() const override { return writes_; }

  void work(Picoseconds cpu, std::uint64_t bytes) {
    cpu_ += cpu;
    writes_.local_store.bytes_issued += bytes;
  }

 private:
  NodeId id_;
  Picoseconds cpu_{};
  pmem::Writes writes_;
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
