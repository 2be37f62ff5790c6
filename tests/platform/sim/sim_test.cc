// What only the simulation promises: determinism, modelled waiting, cores that are shared,
// failures.
#include "platform/sim/sim_platform.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "platform/error.h"
#include "platform/runtime/work.h"
#include "tests/support/platforms.h"

namespace perdura::sim {
namespace {

using fabric::Access;
using fabric::CompletionQueue;
using fabric::RemoteKey;

Profile testbed() { return load_profile(perdura::test::profile_path("erda-connectx3")); }

// A server that offers memory, and what a client needs to reach it.
struct Target {
  Bytes size = 64 * KiB;
  void serve(SimPlatform& platform, CompletionMode mode = CompletionMode::polling) const {
    platform.start_service(0, 0, mode, [size = size](Thread& thread) -> Task<> {
      const auto region = thread.node.create_region("target", size, pmem::Medium::pm);
      const auto memory = thread.endpoint.register_memory(*region, Access::remote_all);
      std::vector<std::unique_ptr<fabric::QueuePair>> clients;
      for (;;) {
        const auto request = co_await thread.endpoint.next_connection();
        clients.push_back(request->accept({}, std::as_bytes(std::span(&memory.key, 1))));
      }
    });
  }
};

struct Initiator {
  std::unique_ptr<pmem::Region> region;
  fabric::MemoryRegion memory;
  std::unique_ptr<fabric::QueuePair> queue_pair;
  RemoteKey key;

  static Task<Initiator> connect(Thread& thread) {
    Initiator self;
    self.region = thread.node.create_region("local", 64 * KiB, pmem::Medium::dram);
    self.memory = thread.endpoint.register_memory(*self.region, Access::local);
    auto connection = co_await thread.endpoint.connect({0, 0}, {}, {});
    self.queue_pair = std::move(connection.queue_pair);
    std::memcpy(&self.key, connection.private_data.data(), sizeof self.key);
    co_return self;
  }
};

TEST(Sim, TheSameRunTakesTheSameTimeToThePicosecond) {
  auto run = [] {
    SimPlatform platform(testbed(), 3);
    Target{}.serve(platform, CompletionMode::event);
    std::vector<std::int64_t> times;
    for (NodeId node = 1; node < 3; ++node) {
      platform.start(node, 1, CompletionMode::event, [&times](Thread& thread) -> Task<> {
        Initiator self = co_await Initiator::connect(thread);
        for (std::uint32_t i = 1; i < 200; ++i) {
          co_await self.queue_pair->write(self.memory.local(0, i * 20), {self.key, 0});
          co_await self.queue_pair->read(self.memory.local(0, i), {self.key, 0});
          times.push_back(thread.executor.now().time_since_epoch().count());
        }
      });
    }
    platform.run();
    return times;
  };
  const auto first = run();
  EXPECT_EQ(first, run());
  EXPECT_EQ(first.size(), 398U);
}

TEST(Sim, ASleepingThreadPaysTheWakeUpAndUsesNoCpuMeanwhile) {
  const Profile profile = testbed();
  auto measure = [&](CompletionMode mode) {
    SimPlatform platform(profile, 2);
    Target{}.serve(platform);
    std::pair<Picoseconds, Picoseconds> latency_and_cpu;
    platform.start(1, 1, mode, [&](Thread& thread) -> Task<> {
      Initiator self = co_await Initiator::connect(thread);
      const Time start = thread.executor.now();
      const Picoseconds cpu = thread.node.cpu_time();
      for (int i = 0; i < 100; ++i) {
        co_await self.queue_pair->read(self.memory.local(0, 64), {self.key, 0});
      }
      latency_and_cpu = {(thread.executor.now() - start) / 100,
                         (thread.node.cpu_time() - cpu) / 100};
    });
    platform.run();
    return latency_and_cpu;
  };
  const auto [polled, polled_cpu] = measure(CompletionMode::polling);
  const auto [slept, slept_cpu] = measure(CompletionMode::event);
  EXPECT_EQ(slept - polled, profile.client.wait.wakeup_latency - profile.cpu.poll);
  EXPECT_EQ(polled_cpu, polled) << "polling keeps the core busy all the time";
  EXPECT_EQ(slept_cpu,
            profile.client.wait.wakeup_cpu + profile.client.wait.sleep_cpu + profile.cpu.post);
}

// What comes from outside the modelled machines is there in time; the thread pays for going to
// sleep, and for no wake-up.
TEST(Sim, AnArrivalFromOutsideWakesAThreadInNoTime) {
  const Profile profile = testbed();
  for (const CompletionMode mode : {CompletionMode::event, CompletionMode::polling}) {
    SimPlatform platform(profile, 2);
    platform.start(1, 1, mode, [&](Thread& thread) -> Task<> {
      co_await yield();
      const Time start = thread.executor.now();
      const Picoseconds cpu = thread.node.cpu_time();
      for (int i = 1; i <= 100; ++i) {
        const Time due = start + Microseconds(100) * i;
        co_await arrival_at(due);
        EXPECT_EQ(thread.executor.now(), due);
      }
      const Picoseconds used = thread.node.cpu_time() - cpu;
      EXPECT_EQ(used, mode == CompletionMode::event ? profile.client.wait.sleep_cpu * 100
                                                    : Picoseconds(Microseconds(100) * 100));
      co_await sleep_for(Microseconds(100));
      EXPECT_GT(thread.executor.now(), start + Microseconds(101 * 100)) << "a timer of its own";
    });
    platform.run();
  }
}

TEST(Sim, ThreadsQueueForTheCoresOfTheirNode) {
  Profile profile = testbed();
  profile.client.cores = 2;
  SimPlatform platform(profile, 2);
  std::vector<Picoseconds> ends;
  for (fabric::Port port = 0; port < 6; ++port) {
    platform.start(1, port, CompletionMode::event, [&](Thread& thread) -> Task<> {
      std::array<std::byte, 1000> data{};
      for (int i = 0; i < 1000; ++i) crc32(0, data);
      co_await yield();
      ends.push_back(thread.executor.now().time_since_epoch());
    });
  }
  platform.run();
  const WorkCost& cost = profile.cpu.work[static_cast<int>(Work::crc32)];
  const Picoseconds work = (cost.fixed + cost.per_byte * 1000) * 1000;
  ASSERT_EQ(ends.size(), 6U);
  // Three after one another on each core.
  EXPECT_GE(ends.back(), work * 3);
  EXPECT_LT(ends.back(),
            work * 3 + profile.client.wait.wakeup_latency * 2 + profile.cpu.context_switch * 6);
}

// Section 4.3 of the Erda paper: a reader that races with a one-sided write can find the object
// incomplete. It finds whole words, and a prefix or a mix of lines.
TEST(Sim, AReadThatRacesWithAWriteCanBeTornAndIsOldOrNewOtherwise) {
  SimPlatform platform(testbed(), 3);
  Target{}.serve(platform);
  constexpr std::uint32_t kSize = 4096;
  bool writing = true;
  platform.start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    Initiator self = co_await Initiator::connect(thread);
    for (int version = 1; version <= 200; ++version) {
      std::memset(self.region->data(), version, kSize);
      co_await self.queue_pair->write(self.memory.local(0, kSize), {self.key, 0});
    }
    writing = false;
  });
  int torn = 0;
  int whole = 0;
  platform.start(2, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    Initiator self = co_await Initiator::connect(thread);
    while (writing) {
      co_await self.queue_pair->read(self.memory.local(0, kSize), {self.key, 0});
      const std::byte* bytes = self.region->data();
      bool mixed = false;
      for (std::uint32_t word = 0; word < kSize; word += 8) {
        for (int i = 1; i < 8; ++i) EXPECT_EQ(bytes[word], bytes[word + i]) << "a torn word";
        mixed = mixed || bytes[word] != bytes[0];
      }
      ++(mixed ? torn : whole);
    }
  });
  platform.run();
  EXPECT_GT(torn, 10);
  EXPECT_GT(whole, 10);
}

TEST(Sim, AKilledNodeKeepsItsNamedRegionsAndLosesItsConnections) {
  SimPlatform platform(testbed(), 2);
  auto server = [](Thread& thread) -> Task<> {
    auto region = thread.node.open_region("log");
    if (region == nullptr) {
      region = thread.node.create_region("log", 4096, pmem::Medium::pm);
      region->store(0, 1);
    } else {
      EXPECT_EQ(region->load(0), 1U);
      region->store(0, 2);
    }
    const auto memory = thread.endpoint.register_memory(*region, Access::remote_all);
    const auto request = co_await thread.endpoint.next_connection();
    const auto client = request->accept({}, std::as_bytes(std::span(&memory.key, 1)));
    co_await sleep_for(std::chrono::seconds(10));
  };
  platform.start_service(0, 0, CompletionMode::polling, server);
  platform.at(Time(Milliseconds(1)), [&] {
    platform.kill(0);
    platform.start_service(0, 0, CompletionMode::polling, server);
  });
  platform.start(1, 1, CompletionMode::polling, [](Thread& thread) -> Task<> {
    Initiator self = co_await Initiator::connect(thread);
    const auto buffer = self.memory.local(0, 8);
    EXPECT_EQ((co_await self.queue_pair->read(buffer, {self.key, 0})).status,
              fabric::Status::success);
    co_await sleep_for(Milliseconds(2));
    EXPECT_FALSE(self.queue_pair->connected());
    EXPECT_NE((co_await self.queue_pair->read(buffer, {self.key, 0})).status,
              fabric::Status::success);
    Initiator again = co_await Initiator::connect(thread);
    EXPECT_EQ((co_await again.queue_pair->read(again.memory.local(0, 8), {again.key, 0})).status,
              fabric::Status::success);
    EXPECT_EQ(static_cast<int>(again.region->data()[0]), 2);
  });
  platform.run();
}

TEST(Sim, AStandstillIsReportedNotWaitedFor) {
  SimPlatform platform(testbed(), 1);
  platform.start(0, 0, CompletionMode::polling,
                 [](Thread& thread) -> Task<> { co_await thread.endpoint.next_connection(); });
  EXPECT_THROW(platform.run(), PlatformError);
}

TEST(Profile, FaultsAreRefusedWithFileAndLine) {
  const std::string good = testbed().text;
  const std::string path = testing::TempDir() + "faulty-profile.toml";
  auto message_for = [&](const std::string& from, const std::string& to) -> std::string {
    std::string text = good;
    const auto found = text.find(from);
    EXPECT_NE(found, std::string::npos) << from;
    text.replace(found, from.size(), to);
    std::ofstream(path) << text;
    try {
      load_profile(path);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "was accepted";
  };
  const auto line_of = [&](const std::string& what) {
    return ":" +
           std::to_string(1 + std::count(good.begin(), good.begin() + good.find(what), '\n')) +
           ": ";
  };
  EXPECT_NE(message_for("crc32_ns =", "crc23_ns =").find("'crc32_ns' is missing"),
            std::string::npos);
  const std::string unknown = message_for("load_ns =", "speed = 3\nload_ns =");
  EXPECT_NE(unknown.find(line_of("load_ns =") + "unknown key 'speed' in [cpu]"), std::string::npos)
      << unknown;
  const std::string text = message_for("cores = 8", "cores = \"many\"");
  EXPECT_NE(text.find(line_of("cores = 8") + "'cores' in [server] must be a whole number"),
            std::string::npos)
      << text;
  EXPECT_NE(message_for("bandwidth_gbit_s = 32", "bandwidth_gbit_s = 0").find("must be above zero"),
            std::string::npos);
  EXPECT_NE(message_for("[link]", "[link").find(path + ":"), std::string::npos);
  EXPECT_THROW(load_profile("no-such-profile.toml"), UsageError);
}

TEST(Profile, WhatIsSaidOfDimmsMustFit) {
  const Profile optane = load_profile(perdura::test::profile_path("optane-cascadelake"));
  ASSERT_TRUE(optane.pm.dimms && optane.dram.rows && optane.numa);
  EXPECT_FALSE(testbed().pm.dimms || testbed().dram.rows || testbed().numa);
  const std::string path = testing::TempDir() + "faulty-dimms.toml";
  const auto message_for = [&](const std::string& from, const std::string& to) -> std::string {
    std::string text = optane.text;
    const auto found = text.find(from);
    EXPECT_NE(found, std::string::npos) << from;
    text.replace(found, from.size(), to);
    std::ofstream(path) << text;
    try {
      load_profile(path);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "was accepted";
  };
  const auto says = [&](const std::string& message, const char* words) {
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  says(message_for("dimms = 6 ", "dimms = 0 "), "'dimms' in [pm] must be above zero");
  says(message_for("interleave_bytes = 4096", "interleave_bytes = 100"),
       "'interleave_bytes' in [pm] must be a multiple of 256");
  says(message_for("buffer_lines = 64", "buffer_lines = 63"),
       "'buffer_lines' in [pm] must be a multiple of buffer_ways");
  says(message_for("buffer_ways = 2", "#"), "'buffer_ways' is missing in [pm]");
  says(message_for("dimms = 6 ", "#"), "unknown key 'buffer_lines' in [pm]");
  says(message_for("open_rows = 192", "#"), "'open_rows' is missing in [dram]");
  says(message_for("round_trip_ns = 60", "#"), "'round_trip_ns' is missing in [numa]");
}

}  // namespace
}  // namespace perdura::sim
