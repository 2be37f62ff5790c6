// What only the simulation promises: determinism, modelled waiting, cores that are shared,
// failures.
#include "platform/sim/sim_platform.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <limits>
#include <regex>
#include <sstream>

#include "platform/base/error.h"
#include "platform/pmem/sim/sim_region.h"
#include "platform/runtime/work.h"
#include "tests/support/platforms.h"
#include "tests/support/temporary_directory.h"

namespace perdura::sim {
namespace {

using fabric::Access;
using fabric::CompletionQueue;
using fabric::RemoteKey;

Profile testbed() { return perdura::test::erda_testbed(); }

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

// Between the same two nodes, of so many bytes; without loading anything else.
Picoseconds time_of(fabric::Opcode opcode, std::uint32_t bytes, const Profile& profile) {
  SimPlatform platform(profile, 2);
  Target{.size = 1 * MiB}.serve(platform);
  Picoseconds time{};
  platform.start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const Initiator self = co_await Initiator::connect(thread);
    const auto region = thread.node.create_region("large", 1 * MiB, pmem::Medium::dram);
    const auto memory = thread.endpoint.register_memory(*region, Access::local);
    const Time begin = thread.executor.now();
    const fabric::RemoteAddress there{self.key, 0};
    const auto buffer = memory.local(0, bytes);
    if (opcode == fabric::Opcode::read) {
      EXPECT_TRUE(co_await self.queue_pair->read(buffer, there));
    } else {
      EXPECT_TRUE(co_await self.queue_pair->write(buffer, there));
    }
    time = thread.executor.now() - begin;
  });
  platform.run();
  return time;
}

// Packets are on the link while others are still on a bus: what a long message takes more than one
// of a packet is what its narrowest place takes, whichever way it goes. (Rounding: a picosecond for
// each of the few transfers.)
TEST(Sim, ALongMessageTakesAsLongAsItsNarrowestPlace) {
  // The bus, and what a device reads over it.
  for (const auto& [pcie, reads] : {std::pair(1.0, 1.0), {3.2, 3.2}, {12.0, 12.0}, {3.2, 0.5}}) {
    Profile profile = testbed();
    profile.nic.pcie_bandwidth = pcie * 1e9;
    if (reads < pcie) profile.nic.pcie_read_bandwidth = reads * 1e9;
    const double link = profile.link.bandwidth * static_cast<double>(profile.link.mtu) /
                        static_cast<double>(profile.link.mtu + profile.link.header);
    const double narrowest = std::min(profile.nic.dma_read_bandwidth(), link);
    const auto packet = static_cast<std::uint32_t>(profile.link.mtu);
    for (const auto opcode : {fabric::Opcode::read, fabric::Opcode::write}) {
      for (const std::uint32_t packets : {2U, 16U, 256U}) {
        SCOPED_TRACE(testing::Message()
                     << to_string(opcode) << " of " << packets << " packets, " << pcie << " GB/s");
        const Picoseconds more =
            time_of(opcode, packets * packet, profile) - time_of(opcode, packet, profile);
        const Picoseconds expected = transfer_time((packets - 1) * packet, narrowest);
        EXPECT_LE(more, expected + transfer_time(packet, narrowest) + Picoseconds(10));
        EXPECT_GE(more, expected - Picoseconds(10));
      }
    }
  }
}

// A phase of READs alone does not go over what was written before it.
TEST(Sim, ReadsDoNotLookAtWhatIsOver) {
  SimPlatform platform(testbed(), 2);
  const auto region = platform.local_node(0)->create_region("target", 64 * KiB, pmem::Medium::pm);
  const auto& model = static_cast<pmem::sim::SimRegion&>(*region->model());
  platform.start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    for (Bytes offset = 0; offset < 32 * KiB; offset += kWord) region->store(offset, 1);
    const auto memory = thread.endpoint.register_memory(*region, Access::remote_all);
    const auto request = co_await thread.endpoint.next_connection();
    const auto peer = request->accept({}, std::as_bytes(std::span(&memory.key, 1)));
    WaitList forever;
    co_await wait(forever);
  });
  platform.start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const Initiator self = co_await Initiator::connect(thread);
    co_await sleep_for(Milliseconds(1));
    for (int i = 0; i < 10; ++i) {
      EXPECT_TRUE(co_await self.queue_pair->read(self.memory.local(0, 4096), {self.key, 0}));
    }
  });
  platform.run();
  EXPECT_EQ(model.timeline().changes_looked_at(), 0U);
}

// What cannot be represented is no number of any row.
TEST(Sim, ARunThatWouldPassTheEndOfTimeFails) {
  using Spoil = void (*)(Profile&);
  const Spoil ways[] = {
      [](Profile& p) { p.link.bandwidth = 1e-9; },
      [](Profile& p) { p.nic.pcie_bandwidth = 1e-9; },
      [](Profile& p) { p.dram.read_bandwidth = 1e-300; },
      [](Profile& p) { p.pm.read_bandwidth = std::numeric_limits<double>::denorm_min(); },
      [](Profile& p) { p.pm.write_bandwidth = 1e-9; },
      [](Profile& p) { p.nic.pcie_write = kLongest; },
      [](Profile& p) { p.cpu.post = kLongest; },
      [](Profile& p) { p.cpu.work[static_cast<int>(Work::copy)].per_byte = kLongest; },
  };
  for (std::size_t way = 0; way < std::size(ways); ++way) {
    SCOPED_TRACE(way);
    Profile profile = testbed();
    ways[way](profile);
    SimPlatform platform(profile, 2);
    Target{}.serve(platform);
    platform.start(1, 1, CompletionMode::polling, [](Thread& thread) -> Task<> {
      const Initiator self = co_await Initiator::connect(thread);
      const std::vector<std::byte> bytes(4096);
      const fabric::RemoteAddress there{self.key, 0};
      for (int i = 0; i < 40; ++i) {
        self.region->write(0, bytes);
        std::vector<std::byte> read(4096);
        self.region->read(0, read);
        co_await self.queue_pair->write(self.memory.local(0, 4096), there);
        co_await self.queue_pair->read(self.memory.local(0, 4096), there);
      }
    });
    try {
      platform.run();
      ADD_FAILURE() << "ended at " << to_microseconds(platform.engine().now().time_since_epoch())
                    << " us";
    } catch (const PlatformError& error) {
      EXPECT_NE(std::string(error.what()).find("would pass its end, 13 days"), std::string::npos)
          << error.what();
    }
  }
}

// Tasks that never end, with time that passes or that stands still.
TEST(Sim, ARunThatNeverEndsCanBeEnded) {
  for (const Picoseconds turn : {Picoseconds(0), Picoseconds(Nanoseconds(50))}) {
    Profile profile = testbed();
    profile.cpu.poll = turn;
    SimPlatform platform(profile, 1);
    std::atomic<bool> flag{false};
    platform.end_when(flag);
    std::uint64_t turns = 0;
    platform.start(0, 0, CompletionMode::polling, [&](Thread&) -> Task<> {
      for (;;) {
        if (++turns == 100'000) flag = true;
        SimThread::running()->charge_time(turn);
        co_await yield();
      }
    });
    EXPECT_THROW(platform.run(), PlatformError);
    EXPECT_LT(turns, 110'000U);
  }
}

TEST(Sim, TimeThatStandsStillIsNoticed) {
  SimPlatform platform(testbed(), 1);
  platform.start(0, 0, CompletionMode::polling, [](Thread&) -> Task<> {
    for (;;) co_await yield();
  });
  try {
    platform.run();
    ADD_FAILURE() << "has ended";
  } catch (const PlatformError& error) {
    EXPECT_NE(std::string(error.what()).find("virtual time stands still"), std::string::npos)
        << error.what();
  }
}

// Whatever number is not one, or is none of a machine's: all numbers of all profiles.
TEST(Profile, EveryNumberHasARangeThatIsToldWithFileAndLine) {
  const perdura::test::TemporaryDirectory folder(testing::TempDir(), "out-of-range");
  const std::string path = folder.path() / "profile.toml";
  std::size_t numbers = 0;
  for (const char* name : {"erda-connectx3", "optane-cascadelake", "optane-connectx3"}) {
    const std::string good = load_profile(perdura::test::profile_path(name)).text;
    std::vector<std::string> lines;
    std::istringstream text(good);
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      std::smatch match;
      if (!std::regex_search(lines[i], match, std::regex("^([a-z0-9_]+) *= *[0-9]"))) continue;
      ++numbers;
      for (const char* value : {"nan", "inf", "-inf", "1e308", "-1", "1e-9", "\"1\"", "true",
                                "9223372036854775807", "0"}) {
        const bool small = std::string(value) == "1e-9" || std::string(value) == "0";
        const std::string key = match[1];
        if (small && key.find("bandwidth") == std::string::npos) continue;
        std::vector<std::string> changed = lines;
        changed[i] = key + " = " + value;
        std::ofstream file(path);
        for (const std::string& line : changed) file << line << '\n';
        file.close();
        try {
          load_profile(path);
          ADD_FAILURE() << name << ": " << changed[i] << " was accepted";
        } catch (const UsageError& error) {
          const std::string message = error.what();
          EXPECT_TRUE(message.starts_with(path + ":" + std::to_string(i + 1) + ": " + key + " in "))
              << message;
          EXPECT_TRUE(
              std::regex_search(message, std::regex("must be a (whole )?number from .* to ")))
              << message;
        }
      }
    }
  }
  EXPECT_GT(numbers, 100U);
}

TEST(Profile, FaultsAreRefusedWithFileAndLine) {
  const std::string good = testbed().text;
  const perdura::test::TemporaryDirectory folder(testing::TempDir(), "faulty-profile");
  const std::string path = folder.path() / "profile.toml";
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
  const std::string mistyped = message_for("crc32_ns =", "crc23_ns =");
  EXPECT_NE(
      mistyped.find(line_of("crc32_ns =") +
                    "unknown key 'crc23_ns' in [cpu] (did you mean 'crc32_ns'?); known are: "),
      std::string::npos)
      << mistyped;
  EXPECT_NE(message_for("crc32_ns =", "#").find("crc32_ns in [cpu] is missing; add crc32_ns = ..."),
            std::string::npos);
  const std::string unknown = message_for("load_ns =", "speed = 3\nload_ns =");
  EXPECT_NE(unknown.find(line_of("load_ns =") + "unknown key 'speed' in [cpu]"), std::string::npos)
      << unknown;
  const std::string text = message_for("cores = 8", "cores = \"many\"");
  EXPECT_NE(text.find(line_of("cores = 8") + "cores in [server] must be a whole number"),
            std::string::npos)
      << text;
  EXPECT_NE(message_for("[link]", "[link").find(path + ":"), std::string::npos);
  EXPECT_THROW(load_profile("no-such-profile.toml"), UsageError);
}

TEST(Profile, WhatIsSaidOfDimmsMustFit) {
  const Profile optane = load_profile(perdura::test::profile_path("optane-cascadelake"));
  ASSERT_TRUE(optane.pm.dimms && optane.dram.rows && optane.numa);
  EXPECT_FALSE(testbed().pm.dimms || testbed().dram.rows || testbed().numa);
  const perdura::test::TemporaryDirectory folder(testing::TempDir(), "faulty-dimms");
  const std::string path = folder.path() / "profile.toml";
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
  says(message_for("dimms = 6 ", "dimms = 0 "),
       "dimms in [pm] must be a whole number from 1 to 64, but is 0");
  says(message_for("interleave_bytes = 4096", "interleave_bytes = 100"),
       "interleave_bytes in [pm] must be a multiple of 256");
  says(message_for("buffer_lines = 64", "buffer_lines = 63"),
       "buffer_lines in [pm] must be a multiple of buffer_ways");
  says(message_for("buffer_ways = 2", "#"), "buffer_ways in [pm] is missing");
  says(message_for("dimms = 6 ", "#"), "unknown key 'buffer_lines' in [pm]");
  says(message_for("dimms = 6 ", "dimm = 6 "),
       "unknown key 'dimm' in [pm] (did you mean 'dimms'?)");
  says(message_for("buffer_ways = 2", "buffer_way = 2"),
       "unknown key 'buffer_way' in [pm] (did you mean 'buffer_ways'?)");
  says(message_for("interleave_bytes = 4096", "interleave = 4096"),
       "unknown key 'interleave' in [pm] (did you mean 'interleave_bytes'?)");
  says(message_for("open_rows = 192", "#"), "open_rows in [dram] is missing");
  says(message_for("round_trip_ns = 60", "#"), "round_trip_ns in [numa] is missing");
}

}  // namespace
}  // namespace perdura::sim
