// The memory probes, on the model, where what they must find is known, and on shared memory.
#include "bench/probe/memory_probes.h"

#include <gtest/gtest.h>

#include <set>

#include "platform/base/error.h"
#include "platform/shm/shm_platform.h"
#include "platform/sim/kernel/profile.h"
#include "platform/sim/sim_platform.h"
#include "tests/bench/probe/common.h"
#include "tests/support/platforms.h"

namespace perdura::bench {
namespace {

using pmem::Medium;
using Values = std::vector<double>;

constexpr Medium kMedia[] = {Medium::dram, Medium::pm};
constexpr CacheState kStates[] = {CacheState::hot, CacheState::flushed, CacheState::cold};

// On the profiles of all testbeds.
class OnModel : public testing::TestWithParam<const char*> {
 protected:
  sim::Profile profile = sim::load_profile(perdura::test::profile_path(GetParam()));
  Effort effort = Effort::of(true, profile.server.cores, true);
  sim::SimPlatform platform{profile, 1};

  const sim::MemoryProfile& memory(Medium medium) const {
    return medium == Medium::pm ? profile.pm : profile.dram;
  }
};
INSTANTIATE_TEST_SUITE_P(Testbeds, OnModel,
                         testing::Values("erda-connectx3", "continuity-connectx5",
                                         "remote-log-connectx4"),
                         [](const auto& testbed) {
                           std::string name = testbed.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST_P(OnModel, AChasesLatencyIsTheProfilesReadLatency) {
  for (const Medium medium : kMedia) {
    for (const Pattern pattern : kPatterns) {
      for (const CacheState state : {CacheState::flushed, CacheState::cold}) {
        sim::SimPlatform fresh(profile, 1);
        EXPECT_EQ(load_latency(fresh, medium, pattern, state, effort),
                  Values{ns(memory(medium).read_latency)});
      }
    }
  }
}

TEST_P(OnModel, AHotLoadsLatencyIsTheProfilesLoad) {
  EXPECT_EQ(load_latency(platform, Medium::dram, Pattern::random, CacheState::hot, effort),
            Values{ns(profile.cpu.load)});
}

// The write-back of a line is under way from the store on; the fence waits for its end.
TEST_P(OnModel, StoreClwbAndFenceTakeTheirInstructionsAndTheWriteLatency) {
  const Picoseconds transfer = sim::transfer_time(kCacheLine, profile.pm.write_bandwidth);
  const sim::CpuProfile& cpu = profile.cpu;
  const Picoseconds persisted =
      cpu.store +
      std::max(std::max(cpu.flush, transfer) + profile.pm.write_latency, cpu.flush + cpu.fence);
  for (const CacheState state : kStates) {
    sim::SimPlatform fresh(profile, 1);
    const Values found = persist_latency(fresh, Medium::pm, Access::store_clwb, state, effort);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_NEAR(found[0], ns(persisted), 1e-6);
  }
}

TEST_P(OnModel, ANonTemporalStoreAndFenceTakeTheCopyAndTheWriteLatency) {
  const sim::WorkCost copy = profile.cpu.work[static_cast<int>(Work::copy)];
  const Picoseconds issue = copy.fixed + copy.per_byte * 8 + profile.cpu.store;
  const Picoseconds transfer = sim::transfer_time(kCacheLine, profile.pm.write_bandwidth);
  const Picoseconds persisted =
      std::max(std::max(issue, transfer) + profile.pm.write_latency, issue + profile.cpu.fence);
  const Values found =
      persist_latency(platform, Medium::pm, Access::ntstore, CacheState::hot, effort);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0], ns(persisted), 1e-6);
}

TEST_P(OnModel, OneThreadReadsAtTheLatencyAndTheBandwidthOfItsAccesses) {
  for (const Medium medium : kMedia) {
    for (Bytes size = 64; size <= 2 * MiB; size *= 2) {
      sim::SimPlatform fresh(profile, 1);
      const double access =
          ns(memory(medium).read_latency + sim::transfer_time(size, memory(medium).read_bandwidth));
      const Values found = bandwidth(fresh, medium, {.size = size}, effort);
      ASSERT_EQ(found.size(), 1U);
      EXPECT_NEAR(found[0], static_cast<double>(size) / access, 1e-6 * found[0]) << size;
    }
  }
}

TEST_P(OnModel, SeveralThreadsReadAndWriteAtTheProfilesBandwidth) {
  for (const Medium medium : kMedia) {
    sim::SimPlatform fresh(profile, 1);
    const Values found = bandwidth(fresh, medium, {.size = 64 * KiB, .threads = 4}, effort);
    EXPECT_NEAR(found[0] * 1e9, memory(medium).read_bandwidth,
                0.02 * memory(medium).read_bandwidth);
  }
  // Each on a core of its own.
  const std::uint32_t threads = std::min(16U, profile.server.cores);
  const auto writes = [&](Medium medium, Access access) {
    const auto with = [&](std::uint32_t count) {
      sim::SimPlatform fresh(profile, 1);
      const Values found =
          bandwidth(fresh, medium,
                    {.access = access, .size = 4 * KiB, .threads = count, .load_share = 0}, effort);
      return found[0] * 1e9;
    };
    // Or as much as they ask for, where that is less.
    const double expected = std::min(memory(medium).write_bandwidth, threads * with(1));
    EXPECT_NEAR(with(threads), expected, 0.02 * expected);
  };
  writes(Medium::pm, Access::ntstore);
  writes(Medium::pm, Access::store_clwb);
  writes(Medium::dram, Access::ntstore);
}

TEST_P(OnModel, ALoadWaitsForOthersOnly) {
  const auto loaded = [&](std::uint32_t threads) {
    sim::SimPlatform fresh(profile, 1);
    return loaded_latency(fresh, Medium::pm, {.size = 16 * KiB, .threads = threads}, effort)[0];
  };
  EXPECT_NEAR(loaded(0), ns(profile.pm.read_latency), 1e-6);
  EXPECT_GT(loaded(4), 1.5 * loaded(0));
}

// 256-byte media lines behind a buffer that merges what follows one another.
TEST_P(OnModel, MediaWriteWholeLines) {
  for (const Access access : {Access::ntstore, Access::store_clwb}) {
    for (Bytes size = 64; size <= 4 * KiB; size *= 2) {
      for (const Pattern pattern : kPatterns) {
        sim::SimPlatform fresh(profile, 1);
        const double expected =
            pattern == Pattern::random && size < kMediaLine ? 256.0 / static_cast<double>(size) : 1;
        EXPECT_EQ(write_amplification(fresh, {.access = access, .pattern = pattern, .size = size},
                                      effort),
                  Values{expected})
            << size << ' ' << to_string(pattern);
      }
    }
  }
}

TEST(MemoryProbes, TheModelsAnswersAreTheSameEveryTime) {
  const auto once = [] {
    sim::SimPlatform platform(
        sim::load_profile(perdura::test::profile_path("continuity-connectx5")), 1);
    return bandwidth(platform, Medium::pm,
                     {.access = Access::ntstore, .threads = 5, .load_share = 30},
                     Effort::of(true, 52, true));
  };
  EXPECT_EQ(once(), once());
}

// A model with DIMMs, rows and two NUMA nodes.
class OnOptane : public testing::Test {
 protected:
  sim::Profile profile = sim::load_profile(perdura::test::profile_path("optane-cascadelake"));
  Effort effort = Effort::of(profile, true);

  double load(Medium medium, Pattern pattern, MemoryPlace place = {}) const {
    sim::SimPlatform platform(profile, 1);
    return load_latency(platform, medium, pattern, CacheState::cold, effort, place).at(0);
  }
  double stream(Stream stream) const {
    sim::SimPlatform platform(profile, 1);
    return bandwidth(platform, Medium::pm, stream, effort).at(0);
  }
};

TEST_F(OnOptane, AFourthOfSequentialLoadsWaitForTheMedia) {
  const double hit = ns(profile.pm.dimms->buffer_read_latency);
  const double media = ns(profile.pm.read_latency);
  EXPECT_NEAR(load(Medium::pm, Pattern::sequential), (media + 3 * hit) / 4, 0.01 * media);
  EXPECT_NEAR(load(Medium::pm, Pattern::random), media, 0.01 * media);
  EXPECT_NEAR(load(Medium::dram, Pattern::random), ns(profile.dram.read_latency), 1);
  EXPECT_NEAR(load(Medium::dram, Pattern::sequential), ns(profile.dram.rows->hit_latency), 1);
}

TEST_F(OnOptane, RemoteLoadsTakeARoundTripMore) {
  for (const Pattern pattern : kPatterns) {
    EXPECT_NEAR(load(Medium::pm, pattern, {.remote = true}) - load(Medium::pm, pattern),
                ns(profile.numa->round_trip), 1e-6);
  }
}

TEST_F(OnOptane, RandomWritesOfPartsOfALineTakeTheMediasTimeForReadingAndWritingIt) {
  const double dimms = profile.pm.dimms->count;
  const double line = kMediaLine / (profile.pm.read_bandwidth / dimms) * 1e9 +
                      kMediaLine / (profile.pm.write_bandwidth / dimms) * 1e9;
  const double found = stream({.access = Access::ntstore,
                               .pattern = Pattern::random,
                               .size = 64,
                               .threads = 8,
                               .load_share = 0,
                               .place = {.one_dimm = true}});
  EXPECT_NEAR(found, 64 / line, 0.1 * found);
}

TEST(MemoryProbes, WhatAPlatformCannotChooseOfItsMemoryIsRefused) {
  const auto create = [](Platform& platform, MemoryPlace place) {
    platform.local_node(0)->create_region_at(place, "x", KiB, Medium::dram);
  };
  sim::SimPlatform sim(sim::load_profile(perdura::test::profile_path("continuity-connectx5")), 1);
  EXPECT_THROW(create(sim, {.remote = true}), UsageError);
  ShmPlatform shm{ShmOptions{}};
  EXPECT_THROW(create(shm, {.remote = true}), UsageError);
  EXPECT_THROW(create(shm, {.one_dimm = true}), UsageError);
  EXPECT_NO_THROW(create(shm, {}));
  for (const pmem::Pages pages : {pmem::Pages::small, pmem::Pages::huge}) {
    EXPECT_THROW(create(sim, {.pages = pages}), UsageError);
    EXPECT_THROW(create(shm, {.pages = pages}), UsageError);
  }
}

Effort little() {
  Effort effort = Effort::of(false, 2, true);
  effort.repetitions = 2;
  effort.loads = 1000;
  effort.interval = std::chrono::microseconds(10);
  effort.working_set = 4 * MiB;
  return effort;
}

// Every probe of the set, with as little work as there can be, on memory that is really there.
TEST(MemoryProbes, EachGivesAPositiveNumberForEachRepetitionOnSharedMemory) {
  const HostMemory host = memory_of_this_host();
  const ProbeSet set = memory_probes(little(), &host);
  std::set<std::string> names;
  for (const Probe& probe : set.probes) {
    ShmOptions options;
    options.accounting = probe.accounting;
    ShmPlatform platform(options);
    const Values values = probe.measure(platform, alone);
    ASSERT_FALSE(values.empty()) << label(probe.setting);
    for (const double value : values) EXPECT_GT(value, 0) << label(probe.setting);
    EXPECT_TRUE(names.insert(label(probe.setting)).second) << label(probe.setting);
  }
}

TEST(MemoryProbes, MediaWriteWholeLinesOnSharedMemoryToo) {
  ShmOptions options;
  options.accounting = pmem::WriteMeter::Level::compared;
  ShmPlatform platform(options);
  Effort effort = little();
  effort.working_set = 16 * MiB;  // in less, neighbors meet by chance
  const Stream stream{.access = Access::ntstore, .pattern = Pattern::random, .size = 64};
  EXPECT_EQ(write_amplification(platform, stream, effort), Values{4});
}

TEST(MemoryProbes, WhatTheModelDoesNotHaveIsNamed) {
  const ProbeSet set = memory_probes(Effort::of(true, 8, true), nullptr);
  std::vector<std::string> names;
  for (const Unanswered& unanswered : set.unanswered) names.push_back(unanswered.probe);
  EXPECT_EQ(names, (std::vector<std::string>{"pages", "numa", "one DIMM"}));
}

}  // namespace
}  // namespace perdura::bench
