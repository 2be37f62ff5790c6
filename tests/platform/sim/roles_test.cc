// Nodes of different roles: a profile may describe each role's machines, memory and links of their
// own; and the bytes that each node sends and receives.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "platform/base/error.h"
#include "platform/runtime/work.h"
#include "platform/sim/sim_platform.h"
#include "tests/support/platforms.h"
#include "tests/support/temporary_directory.h"

namespace perdura::sim {
namespace {

using fabric::Access;
using fabric::Traffic;

// The base profile's text with tables behind it, as a file.
class RoleProfileTest : public testing::Test {
 protected:
  Profile with(const std::string& tables) const {
    std::ofstream(file_) << base_.text << tables;
    return load_profile(file_);
  }
  std::string refusal(const std::string& tables) const {
    try {
      with(tables);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "was accepted";
  }
  // The place of a line behind the base profile.
  std::string line(std::ptrdiff_t behind) const {
    const auto before = std::count(base_.text.begin(), base_.text.end(), '\n');
    return file_ + ":" + std::to_string(before + behind) + ": ";
  }

  const Profile base_ = load_profile(perdura::test::profile_path("erda-connectx3"));
  const perdura::test::TemporaryDirectory folder_{testing::TempDir(), "role-profile"};
  const std::string file_ = folder_.path() / "roles.toml";
};

// What node 1 of two measures of a WRITE to node 0, of a READ from there, of reading node 1's own
// persistent memory, and of its own computing.
struct Times {
  Picoseconds write;
  Picoseconds read;
  Picoseconds load;
  Picoseconds compute;
  Traffic server;
  Traffic client;
  bool operator==(const Times&) const = default;
};

Times measure(const Profile& profile, std::uint32_t bytes, const std::string& first = "server",
              const std::string& second = "client") {
  SimPlatform platform(profile, std::vector<NodesOfRole>{{first, 1}, {second, 1}});
  Times times{};
  fabric::RemoteKey key;
  platform.start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("memory", 256 * KiB, pmem::Medium::pm);
    key = thread.endpoint.register_memory(*region, Access::remote_all).key;
    fabric::CompletionQueue completions;
    const auto request = co_await thread.endpoint.next_connection();
    const auto peer = request->accept({.completions = &completions}, {});
    co_await completions.next();
  });
  platform.start(1, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("memory", 256 * KiB, pmem::Medium::pm);
    const auto memory = thread.endpoint.register_memory(*region, Access::remote_all);
    const auto connection = co_await thread.endpoint.connect({0, 0}, {}, {});
    const fabric::RemoteAddress there{key, 0};
    Time last = thread.executor.now();
    const auto elapsed = [&] {
      const Time before = std::exchange(last, thread.executor.now());
      return last - before;
    };
    co_await connection.queue_pair->write(memory.local(0, bytes), there);
    times.write = elapsed();
    co_await connection.queue_pair->read(memory.local(0, bytes), there);
    times.read = elapsed();
    std::vector<std::byte> data(64 * KiB);
    region->read(0, data);
    times.load = elapsed();
    crc32(1, data);
    times.compute = elapsed();
    times.server = platform.local_node(0)->traffic().at(0);
    times.client = platform.local_node(1)->traffic().at(1);
  });
  platform.run();
  return times;
}

TEST_F(RoleProfileTest, TablesWithoutKeysChangeNothing) {
  EXPECT_EQ(measure(with("[role.server]\n[role.client.pm]\n[role.client.link]\n"), 5000),
            measure(base_, 5000));
}

TEST_F(RoleProfileTest, OnlyTheNodesOfTheRoleAreOtherMachines) {
  const Times usual = measure(base_, 5000);
  // A role's memory and CPU are its own.
  Times other = measure(with("[role.client.pm]\nread_bandwidth_gb_s = 2\n"), 5000);
  EXPECT_GT(other.load, usual.load);
  EXPECT_EQ(other.compute, usual.compute);
  other = measure(with("[role.client.cpu]\ncrc32_ns_per_byte = 3.5\n"), 5000);
  EXPECT_GT(other.compute, usual.compute);
  EXPECT_EQ(other.load, usual.load);
  for (const char* of_server : {"[role.server.pm]\nread_bandwidth_gb_s = 2\n",
                                "[role.server.cpu]\ncrc32_ns_per_byte = 3.5\n"}) {
    other = measure(with(of_server), 5000);
    EXPECT_EQ(other.load, usual.load) << of_server;
    EXPECT_EQ(other.compute, usual.compute) << of_server;
  }
  // A WRITE goes through the NICs and links of both, and into the memory of the server alone.
  for (const char* of_either : {"nic]\nprocessing_ns = 300\n", "link]\nbandwidth_gbit_s = 4\n",
                                "link]\npropagation_ns = 900\n"}) {
    for (const char* role : {"[role.server.", "[role.client."}) {
      EXPECT_GT(measure(with(std::string(role) + of_either), 5000).write, usual.write)
          << role << of_either;
    }
  }
  // The doorbell and the completion cross the client's bus; the server's acknowledgment does not
  // wait until the payload has crossed the server's.
  constexpr const char* kBus = "nic]\npcie_write_ns = 400\n";
  EXPECT_GT(measure(with(std::string("[role.client.") + kBus), 5000).write, usual.write);
  EXPECT_EQ(measure(with(std::string("[role.server.") + kBus), 5000).write, usual.write);
  // The data of a READ crosses both.
  constexpr const char* kSlowBus = "nic]\npcie_bandwidth_gb_s = 0.5\n";
  for (const char* role : {"[role.server.", "[role.client."}) {
    EXPECT_GT(measure(with(std::string(role) + kSlowBus), 5000).read, usual.read) << role;
  }
  // A faster link at one end only is no faster way.
  EXPECT_EQ(measure(with("[role.server.link]\nbandwidth_gbit_s = 64\n"), 5000).write, usual.write);
}

// Roles have whatever names the nodes have.
TEST_F(RoleProfileTest, ARoleMayHaveAnyName) {
  const Profile profile = with("[role.mirror.cpu]\ncrc32_ns_per_byte = 3.5\n");
  const Times usual = measure(base_, 64);
  EXPECT_GT(measure(profile, 64, "primary", "mirror").compute, usual.compute);
  EXPECT_EQ(measure(profile, 64, "mirror", "primary").compute, usual.compute);
  EXPECT_EQ(&profile.of_role("primary"), &profile);
}

TEST_F(RoleProfileTest, ARoleMayHaveDimmsThatTheOthersHaveNot) {
  const Profile profile = with(
      "[role.server.pm]\ndimms = 6\ninterleave_bytes = 4096\nbuffer_lines = 64\n"
      "buffer_ways = 4\nbuffer_read_latency_ns = 160\nport_bandwidth_gb_s = 10\n"
      "write_queue_lines = 16\nloads_under_way = 10\n[role.server.numa]\nround_trip_ns = 70\n"
      "bandwidth_gb_s = 20\n[role.server]\ncores = 3\n");
  const Profile& server = profile.of_role("server");
  ASSERT_TRUE(server.pm.dimms);
  EXPECT_EQ(server.pm.dimms->count, 6U);
  EXPECT_EQ(server.pm.read_latency, profile.pm.read_latency) << "what it does not say stays";
  EXPECT_TRUE(server.numa);
  EXPECT_EQ(server.server.cores, 3U);
  EXPECT_FALSE(profile.pm.dimms || profile.numa);
  EXPECT_EQ(profile.server.cores, 8U);
}

TEST_F(RoleProfileTest, FaultsNameFileAndLine) {
  EXPECT_EQ(refusal("[role.server]\nspeed = 1\n")
                .find(line(2) + "unknown key 'speed' in [role.server]; known are: "),
            0U);
  EXPECT_EQ(refusal("[role.server]\nddio = true\n").find(line(2) + "unknown key 'ddio'"), 0U);
  EXPECT_EQ(refusal("[role.server.pm]\n\nspeed = 1\n")
                .find(line(3) + "unknown key 'speed' in [role.server.pm]; known are: "),
            0U);
  EXPECT_EQ(refusal("[role.a.pm]\nread_latency_ns = -1\n")
                .find(line(2) + "read_latency_ns in [role.a.pm] must be a number from 0"),
            0U);
  EXPECT_EQ(
      refusal("[role.a]\ncores = 0\n").find(line(2) + "cores in [role.a] must be a whole number"),
      0U);
  EXPECT_EQ(refusal("[role]\na = 1\n"),
            line(2) + "a in [role] must be a section, [role.a], but is 1");
  EXPECT_EQ(refusal("[role.a]\npm = 1\n"),
            line(2) + "pm in [role.a] must be a section, [role.a.pm], but is 1");
  EXPECT_EQ(refusal("[role.a.numa]\nround_trips_ns = 1\nbandwidth_gb_s = 20\n")
                .find(line(2) + "unknown key 'round_trips_ns' in [role.a.numa] (did you mean "
                                "'round_trip_ns'?)"),
            0U);
  // A second NUMA node has all its keys, wherever it is described.
  EXPECT_NE(refusal("[role.a.numa]\nround_trip_ns = 1\n")
                .find("bandwidth_gb_s in [role.a.numa] is missing"),
            std::string::npos);
}

TEST_F(RoleProfileTest, ARoleThatNoNodeHasIsAnError) {
  const Profile profile = with("[role.server]\n[role.storage]\n");
  const std::string expected =
      line(2) + "no node has the role 'storage'; the roles are: primary, mirror, server";
  try {
    SimPlatform(profile, std::vector<NodesOfRole>{{"primary"}, {"mirror", 2}, {"server", 0}});
    ADD_FAILURE() << "was accepted";
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(), expected);
  }
  EXPECT_THROW(SimPlatform(profile, 2), UsageError);
}

// 5000 bytes are three packets of 2048 bytes or less; an acknowledgment, and the request of a READ,
// is one of none.
TEST_F(RoleProfileTest, HeadersAndAcknowledgmentsAreTraffic) {
  const Bytes header = base_.link.header;
  ASSERT_EQ(base_.link.mtu, 2048U);
  const Times times = measure(base_, 5000);
  EXPECT_EQ(times.client, (Traffic{5000 + 4 * header, 5000 + 4 * header}));
  EXPECT_EQ(times.server, (Traffic{5000 + 4 * header, 5000 + 4 * header}));
  // The smaller packets of two links are those of the way.
  const Times smaller = measure(with("[role.server.link]\nmtu_bytes = 1024\n"), 5000);
  EXPECT_EQ(smaller.client, (Traffic{5000 + 6 * header, 5000 + 6 * header}));
}

}  // namespace
}  // namespace perdura::sim
