// A characterization written from the model of a testbed is that testbed, as far as probes can see.
#include "bench/probe/characterization.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "bench/probe/building_blocks.h"
#include "bench/probe/memory_probes.h"
#include "bench/probe/rdma_probes.h"
#include "platform/sim/kernel/profile.h"
#include "platform/sim/sim_platform.h"
#include "tests/support/platforms.h"
#include "tests/support/temporary_directory.h"

namespace perdura::bench {
namespace {

sim::Profile load(const char* name) { return sim::load_profile(perdura::test::profile_path(name)); }

// Its text must be a profile that can be read.
sim::Profile read_back(const std::string& text) {
  const perdura::test::TemporaryDirectory folder(testing::TempDir(), "characterization");
  const std::string path = folder.path() / "profile.toml";
  std::ofstream(path) << text;
  return sim::load_profile(path);
}

// Only the probes that a characterization uses.
bool is_used(const Setting& s) {
  if (s.probe == "idle-latency") return s.pattern == "random";
  if (s.probe == "bandwidth-over-size") return s.pattern == "sequential" && s.size == 256 * KiB;
  if (s.probe == "rdma-bandwidth") return s.size >= 128 * KiB && s.operation == "WRITE";
  return s.probe == "building-block" || s.probe == "rdma-latency-inline" ||
         s.probe == "rdma-post" || (s.probe == "rdma-latency" && s.size == 8);
}

Characterized probe(const sim::Profile& testbed) {
  const Effort effort = Effort::of(true, testbed.server.cores, true);
  Characterized found{.name = "found", .date = "today"};
  for (const ProbeSet& set : {memory_probes(effort, nullptr), building_block_probes(effort),
                              rdma_probes(effort, true, {})}) {
    for (const Probe& probe : set.probes) {
      if (!is_used(probe.setting)) continue;
      sim::SimPlatform platform(testbed, probe.nodes);
      const std::vector<double> values = probe.measure(platform, alone);
      if (!values.empty()) found.readings.push_back(reading_of(probe.setting, values));
    }
  }
  sim::SimPlatform platform(testbed, 1);
  found.capabilities = capabilities(platform);
  return found;
}

class RoundTrip : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Testbeds, RoundTrip,
                         testing::Values("erda-connectx3", "continuity-connectx5",
                                         "remote-log-connectx4"));

// What is exact is so to the picosecond to which profiles are read.
TEST_P(RoundTrip, TheParametersThatProbesSeeComeBack) {
  const sim::Profile testbed = load(GetParam());
  const sim::Profile back = read_back(characterize(probe(testbed), testbed));
  for (int i = 0; i < kWorkKinds; ++i) {
    EXPECT_EQ(back.cpu.work[i].fixed, testbed.cpu.work[i].fixed) << i;
    EXPECT_EQ(back.cpu.work[i].per_byte, testbed.cpu.work[i].per_byte) << i;
  }
  EXPECT_EQ(back.cpu.load, testbed.cpu.load);
  EXPECT_EQ(back.cpu.store, testbed.cpu.store);
  EXPECT_EQ(back.cpu.flush, testbed.cpu.flush);
  EXPECT_EQ(back.cpu.fence, testbed.cpu.fence);
  EXPECT_EQ(back.cpu.post, testbed.cpu.post);
  EXPECT_EQ(back.dram.read_latency, testbed.dram.read_latency);
  EXPECT_EQ(back.pm.read_latency, testbed.pm.read_latency);
  EXPECT_EQ(back.nic.max_inline, testbed.nic.max_inline);
  EXPECT_EQ(back.nic.flush, testbed.nic.flush);
  EXPECT_EQ(back.nic.atomic_write, testbed.nic.atomic_write);
  // Bandwidths are those of a finite time with a latency at its beginning.
  EXPECT_NEAR(back.dram.read_bandwidth / testbed.dram.read_bandwidth, 1, 0.02);
  EXPECT_NEAR(back.pm.read_bandwidth / testbed.pm.read_bandwidth, 1, 0.02);
  // The wire is not seen to be faster than the bus behind it.
  const double headers =
      static_cast<double>(testbed.link.header) / static_cast<double>(testbed.link.mtu);
  const double wire = std::min(testbed.link.bandwidth, testbed.nic.pcie_bandwidth * (1 + headers));
  EXPECT_NEAR(back.link.bandwidth / wire, 1, 0.02);
  // So is what they were taken away from.
  const auto close = [](Picoseconds found, Picoseconds expected) {
    return std::abs((found - expected).count()) < 3000;
  };
  EXPECT_TRUE(close(back.nic.pcie_read, testbed.nic.pcie_read));
  EXPECT_TRUE(close(back.link.propagation, testbed.link.propagation));
}

// From another base, what cannot be told apart is as there, and the sum of all is right.
TEST(Characterization, AWriteTakesAsLongOnTheProfileThatWasWritten) {
  const sim::Profile testbed = load("continuity-connectx5");
  const sim::Profile back = read_back(characterize(probe(testbed), load("remote-log-connectx4")));
  const auto latency = [](const sim::Profile& profile) {
    sim::SimPlatform platform(profile, 2);
    return rdma(platform, {.inlined = true}, Effort::of(true, 4, true)).at(0);
  };
  EXPECT_NEAR(latency(back) / latency(testbed), 1, 0.01);
}

// What was measured is less than the passes of the base take by themselves.
TEST(Characterization, ASlowBaseDoesNotMakeAFastFabricSlow) {
  sim::Profile fast = load("continuity-connectx5");
  fast.nic.processing /= 100;
  fast.nic.pcie_write /= 100;
  fast.link.propagation /= 100;
  const std::string text = characterize(probe(fast), load("remote-log-connectx4"));
  EXPECT_NE(text.find("of what it is in remote-log-connectx4, which is more than"),
            std::string::npos);
  const auto latency = [](const sim::Profile& profile) {
    sim::SimPlatform platform(profile, 2);
    return rdma(platform, {.inlined = true}, Effort::of(true, 4, true)).at(0);
  };
  EXPECT_NEAR(latency(read_back(text)) / latency(fast), 1, 0.02);
}

TEST(Characterization, KeepsWhatItsBaseSaysOfDimmsRowsAndNumaNodes) {
  const sim::Profile base = load("optane-cascadelake");
  const sim::Profile back = read_back(characterize({.name = "x", .date = "today"}, base));
  ASSERT_TRUE(back.pm.dimms && back.dram.rows && back.numa);
  EXPECT_EQ(back.pm.dimms->count, base.pm.dimms->count);
  EXPECT_EQ(back.pm.dimms->interleave, base.pm.dimms->interleave);
  EXPECT_EQ(back.pm.dimms->buffer_lines, base.pm.dimms->buffer_lines);
  EXPECT_EQ(back.pm.dimms->buffer_ways, base.pm.dimms->buffer_ways);
  EXPECT_EQ(back.pm.dimms->buffer_read_latency, base.pm.dimms->buffer_read_latency);
  EXPECT_EQ(back.pm.dimms->write_queue, base.pm.dimms->write_queue);
  EXPECT_EQ(back.pm.dimms->loads_under_way, base.pm.dimms->loads_under_way);
  EXPECT_EQ(back.pm.streaming_latency, base.pm.streaming_latency);
  EXPECT_EQ(back.dram.rows->hit_latency, base.dram.rows->hit_latency);
  EXPECT_EQ(back.numa->round_trip, base.numa->round_trip);
}

TEST(Characterization, WhatWasNotMeasuredIsAsInTheBaseAndSaysSo) {
  const sim::Profile base = load("erda-connectx3");
  const std::string text = characterize({.name = "x", .date = "today"}, base);
  const sim::Profile back = read_back(text);
  EXPECT_EQ(back.pm.write_latency, base.pm.write_latency);
  EXPECT_EQ(back.link.bandwidth, base.link.bandwidth);
  EXPECT_EQ(back.server.cores, base.server.cores);
  std::istringstream lines(text);
  int values = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" = ") == std::string::npos || line.starts_with("name") ||
        line.starts_with("title")) {
      continue;
    }
    ++values;
    EXPECT_NE(line.find("# not measured; from erda-connectx3"), std::string::npos) << line;
  }
  EXPECT_GT(values, 50);
}

}  // namespace
}  // namespace perdura::bench
