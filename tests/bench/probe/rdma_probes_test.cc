// The RDMA probes, on the model, where what they must find follows from the profile, and on every
// platform.
#include "bench/probe/rdma_probes.h"

#include <gtest/gtest.h>

#include <set>

#include "platform/sim/kernel/profile.h"
#include "platform/sim/sim_platform.h"
#include "tests/bench/probe/common.h"
#include "tests/support/platforms.h"

namespace perdura::bench {
namespace {

using fabric::Opcode;
using sim::transfer_time;

class RdmaOnModel : public testing::TestWithParam<const char*> {
 protected:
  sim::Profile profile = sim::load_profile(perdura::test::profile_path(GetParam()));
  Effort effort = Effort::of(true, profile.server.cores, true);

  double measure(RdmaLoad load) {
    sim::SimPlatform platform(profile, load.nodes());
    return rdma(platform, load, effort).at(0);
  }
  Picoseconds wire(Bytes bytes) const {
    return transfer_time(bytes + profile.link.header, profile.link.bandwidth);
  }
  // Of an inline WRITE: the doorbell, three passes through a device, the link both ways, the
  // completion.
  Picoseconds inline_write() const {
    return profile.cpu.post + 2 * profile.nic.pcie_write + 3 * profile.nic.processing +
           2 * profile.link.propagation + wire(8) + wire(0) + profile.cpu.poll;
  }
};
INSTANTIATE_TEST_SUITE_P(Testbeds, RdmaOnModel,
                         testing::Values("erda-connectx3", "continuity-connectx5",
                                         "remote-log-connectx4"));

TEST_P(RdmaOnModel, AnInlineWriteTakesTheSumOfItsPath) {
  EXPECT_NEAR(measure({.inlined = true}), ns(inline_write()), 1);
}

TEST_P(RdmaOnModel, OtherWritesAreFetchedFirst) {
  EXPECT_NEAR(measure({}) - measure({.inlined = true}),
              ns(profile.nic.pcie_read + transfer_time(8, profile.nic.pcie_bandwidth)), 1);
}

TEST_P(RdmaOnModel, ARoundTripIsASendThatIsAnsweredByOne) {
  const double one_way = measure({.opcode = Opcode::send, .inlined = true, .size = 32});
  const double both =
      measure({.opcode = Opcode::send, .inlined = true, .answered = true, .size = 32});
  EXPECT_GT(both, one_way) << "whose completion says that the other device has it";
  EXPECT_LT(both, 2.5 * one_way);
}

TEST_P(RdmaOnModel, PostingTakesWhatTheProfileSays) {
  EXPECT_EQ(measure({.metric = RdmaMetric::post}), ns(profile.cpu.post));
}

TEST_P(RdmaOnModel, LargeWritesFillTheLinkOrTheBus) {
  const double payload = static_cast<double>(profile.link.mtu) /
                         static_cast<double>(profile.link.mtu + profile.link.header);
  const double expected =
      std::min(profile.link.bandwidth * payload, profile.nic.pcie_bandwidth) * 1e-9;
  EXPECT_NEAR(measure({.metric = RdmaMetric::bandwidth, .size = MiB, .depth = 16}) / expected, 1,
              0.02);
}

TEST_P(RdmaOnModel, AtomicsOfSeveralThreadsComeAtTheDevicesRate) {
  const double rate = measure(
      {.opcode = Opcode::fetch_and_add, .metric = RdmaMetric::rate, .depth = 16, .threads = 4});
  EXPECT_LE(rate, 1e3 / ns(profile.nic.atomic) * 1.02);
}

TEST(RdmaProbes, WhatADeviceDoesNotHaveIsNotMeasured) {
  sim::Profile profile = sim::load_profile(perdura::test::profile_path("continuity-connectx5"));
  for (const bool there : {false, true}) {
    profile.nic.flush = profile.nic.atomic_write = there;
    for (const Opcode opcode : {Opcode::flush, Opcode::atomic_write}) {
      sim::SimPlatform platform(profile, 2);
      EXPECT_EQ(rdma(platform, {.opcode = opcode}, Effort::of(true, 4, true)).empty(), !there);
    }
    sim::SimPlatform platform(profile, 1);
    EXPECT_EQ(capabilities(platform).flush, there);
  }
}

// Section 2.4.2: a region with more pages than the NIC caches translations is slower to write to, and
// one in pages that are all cached is as fast as a small one.
TEST(RdmaProbes, RegionsOfManyPagesAreSlower) {
  const sim::Profile profile = sim::load_profile(perdura::test::profile_path("optane-connectx3"));
  const auto rate = [&](Bytes size, pmem::Pages pages) {
    sim::SimPlatform platform(profile, 2);
    return rdma(platform,
                {.metric = RdmaMetric::rate, .depth = 16, .region_size = size, .pages = pages},
                Effort::of(profile, true))
        .at(0);
  };
  ASSERT_LT(32, profile.translation->cache_entries);
  const double cached = rate(4 * MiB, pmem::Pages::huge);
  EXPECT_EQ(rate(64 * MiB, pmem::Pages::huge), cached);
  const double missing = rate(64 * MiB, pmem::Pages::small);
  EXPECT_LT(missing, 0.9 * cached);
  EXPECT_LT(rate(16 * GiB, pmem::Pages::huge), 0.9 * cached);
  EXPECT_GT(rate(1 * GiB, pmem::Pages::small), 0) << "although it takes long to register";
}

// With as little work as there can be.
TEST(RdmaProbes, EachGivesAPositiveNumberOnEveryPlatform) {
  for (const std::string& name : perdura::test::platform_names()) {
    Effort effort = Effort::of(name == "sim", 2, true);
    effort.repetitions = 2;
    effort.operations = 20;
    std::set<std::string> names;
    for (const Probe& probe : rdma_probes(effort, name == "sim", {}).probes) {
      if (probe.setting.operation == "FLUSH" || probe.setting.operation == "ATOMIC_WRITE") continue;
      const auto platform = perdura::test::make_platform(name, probe.nodes);
      const std::vector<double> values = probe.measure(*platform, alone);
      EXPECT_EQ(values.size(), 2U) << name << ' ' << label(probe.setting);
      for (const double value : values) EXPECT_GT(value, 0) << name << ' ' << label(probe.setting);
      EXPECT_TRUE(names.insert(probe.setting.probe + label(probe.setting)).second)
          << label(probe.setting);
    }
  }
}

}  // namespace
}  // namespace perdura::bench
