#include "harness/config/site.h"

#include <gtest/gtest.h>

#include <fstream>

#include "harness/config/document.h"
#include "platform/base/error.h"
#include "tests/harness/temporary_folder.h"

namespace perdura::harness {
namespace {

const std::string kServer = "[[host]]\nname = \"s\"\nrole = \"server\"\n";
const std::string kClient = "[[host]]\nname = \"c\"\nrole = \"client\"\n";

Site site_of(const std::string& text) { return read_site(Document::parse(text, "lab.toml")); }

// The message that the text is refused with.
std::string refused(const std::string& text) {
  try {
    site_of(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing wrong";
}

TEST(Site, TheExampleLoads) {
  const Site site = load_site(std::filesystem::path(PERDURA_SOURCE_DIR) / "sites/example.toml");
  EXPECT_EQ(site.name, "example");
  EXPECT_EQ(site.profile.text, "erda-connectx3");
  EXPECT_EQ(site.pm_directory.text, "/mnt/pmem0/perdura");
  ASSERT_EQ(site.hosts.size(), 3U);
  EXPECT_EQ(site.hosts[0].role, "server");
  EXPECT_EQ(site.hosts[0].cores, (std::vector<unsigned>{0, 1, 2, 3}));
  EXPECT_EQ(site.hosts[0].numa_node, 0U);
  EXPECT_EQ(site.hosts[0].device, "mlx5_0");
  EXPECT_EQ(site.hosts[2].role, "client");
  EXPECT_TRUE(site.hosts[2].cores.empty());
  EXPECT_EQ(site.hosts[2].numa_node, std::nullopt);
}

const Roles kRoles({{"server"}, {"client", 4}});

TEST(Site, NodesTakeHostsByRoleAndClientsInTurn) {
  const Site site = site_of("name = \"x\"\n" + kClient + "cores = [1]\n" + kServer +
                            "cores = [0]\n[[host]]\nname = \"d\"\nrole = \"client\"\n");
  EXPECT_EQ(host_of_node(site, kRoles, 0)->name, "s");
  EXPECT_EQ(host_of_node(site, kRoles, 1)->name, "c");
  EXPECT_EQ(host_of_node(site, kRoles, 2)->name, "d");
  EXPECT_EQ(host_of_node(site, kRoles, 3)->name, "c");
  EXPECT_EQ(host_of_node(Site{}, kRoles, 0), nullptr);
  EXPECT_EQ(host_of_node(Site{}, kRoles, 1), nullptr);
}

TEST(Site, FillsInOnlyWhatTheExperimentLeavesOpen) {
  Site site;
  site.profile = {"of-site", "lab.toml:2"};
  site.pm_directory.text = "/pm";
  Experiment open;
  apply_site(site, open);
  EXPECT_EQ(open.profile.text, "of-site");
  EXPECT_EQ(open.shm.pm_directory.text, "/pm");
  Experiment settled;
  settled.profile.text = "own";
  settled.shm.pm_directory.text = "/own";
  apply_site(site, settled);
  EXPECT_EQ(settled.profile.text, "own");
  EXPECT_EQ(settled.shm.pm_directory.text, "/own");
}

TEST(Site, MistakesAreNamedWithTheirPlace) {
  const std::string name = "name = \"x\"\n";
  EXPECT_EQ(refused(name + kServer + kClient), "nothing wrong");
  EXPECT_EQ(refused(kServer + kClient), "lab.toml:1: name is missing; add name = \"...\"");
  EXPECT_EQ(refused(name + kServer + kServer + kClient),
            "lab.toml: host s has the same role twice; keep one");
  EXPECT_EQ(refused(name + "[[host]]\nname = \"s\"\n"),
            "lab.toml:2: host s needs role = \"server\", \"client\" or another role");
  EXPECT_EQ(refused(name + "[[host]]\nrole = \"server\"\n"),
            "lab.toml:2: [[host]] needs name = \"...\"");
  EXPECT_EQ(refused(name + "[host]\nrole = \"server\"\n"),
            "lab.toml:2: host must be written as [[host]], but is a section");
  EXPECT_EQ(refused(name + kServer + "core = 1\n" + kClient),
            "lab.toml:5: unknown key 'core' in [host] (did you mean 'cores'?); known are: name, "
            "role, cores, numa_node, "
            "device");
  EXPECT_EQ(refused(name + kServer + "cores = []\n" + kClient),
            "lab.toml:5: cores in [host] must be a list of core numbers, such as [0, 1], but is "
            "empty; leave it out for any");
  EXPECT_EQ(refused(name + kServer + "cores = [1, 1]\n" + kClient),
            "lab.toml:5: cores in [host] names core 1 twice");
  EXPECT_EQ(refused(name + kServer + "cores = [-1]\n" + kClient),
            "lab.toml:5: cores in [host] must be a whole number from 0 to 1023, but is -1");
}

TEST(Site, EachRoleOfAPointNeedsAHost) {
  const Site site = site_of("name = \"x\"\n" + kServer + kClient);
  EXPECT_NO_THROW(check_roles(site, kRoles));
  EXPECT_NO_THROW(check_roles(Site{}, kRoles)) << "a site may leave hosts to mpirun";
  try {
    check_roles(site, Roles({{"server"}, {"mirror", 2}, {"client"}}));
    FAIL() << "nobody is the mirror";
  } catch (const UsageError& error) {
    EXPECT_EQ(std::string(error.what()),
              "lab.toml: no [[host]] has role \"mirror\", and this experiment needs a server, 2 "
              "mirrors and a client; add it there");
  }
}

TEST(Site, HostsHaveNamesOfHosts) {
  const auto refused_as = [](const std::string& host) {
    return refused("name = \"x\"\n" + kServer + "[[host]]\nname = '" + host +
                   "'\nrole = \"client\"\n");
  };
  for (int c = 32; c < 127; ++c) {
    const char character = static_cast<char>(c);
    if (character == '\'') continue;  // ends the text in TOML
    const std::string host = std::string("a") + character;
    const bool allowed = std::isalnum(c) != 0 || std::string(".-_:").find(character) < 4;
    EXPECT_EQ(refused_as(host), allowed ? "nothing wrong"
                                        : "lab.toml:6: '" + host +
                                              "' cannot be the name of a host; use letters, "
                                              "digits, '.', '-' and '_', or an address");
  }
  EXPECT_EQ(refused_as("fe80::1"), "nothing wrong");
  EXPECT_NE(refused_as("n\xc3\xb6rd"), "nothing wrong");
}

TEST(Site, RanksOnSeveralHostsMustBeWhereItSays) {
  const auto refused_on = [](const Site& site, const std::vector<std::string>& hosts) {
    try {
      check_hosts_of_ranks(site, kRoles, hosts);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("nothing wrong");
  };
  const std::string another = "[[host]]\nname = \"d.example.org\"\nrole = \"client\"\n";
  const Site site = site_of("name = \"x\"\n" + kClient + kServer + another);
  EXPECT_EQ(refused_on(site, {"s", "c", "d"}), "nothing wrong");
  EXPECT_EQ(refused_on(site, {"s.lab", "c", "C", "d.lab"}), "nothing wrong");
  EXPECT_EQ(refused_on(site, {"c", "s", "d"}),
            "lab.toml: rank 0 is on host c, but the server is s; let mpirun's hostfile begin with "
            "it, as 'perdura plan --hostfile' does");
  EXPECT_EQ(
      refused_on(site, {"s", "c", "d", "e"}),
      "lab.toml: rank 3 is on host e, which is not one of this site's; add it there, or leave it "
      "out of mpirun's hostfile");
  EXPECT_EQ(refused_on(site, {"sc", "c"}).substr(0, 17), "lab.toml: rank 0 ");

  // Nothing is compared with no ranks, on one host, without a site, or with addresses.
  EXPECT_EQ(refused_on(site, {}), "nothing wrong");
  EXPECT_EQ(refused_on(site, {"other", "other"}), "nothing wrong");
  EXPECT_EQ(refused_on(Site{}, {"a", "b"}), "nothing wrong");
  for (const std::string address : {"10.0.0.7", "fe80::1"}) {
    const Site of_addresses = site_of("name = \"x\"\n" + kClient + "[[host]]\nname = \"" + address +
                                      "\"\nrole = \"server\"\n");
    EXPECT_EQ(refused_on(of_addresses, {"a", "c"}), "nothing wrong");
  }
}

TEST(Site, CoresMustExistAndBelongToTheirNumaNode) {
  const test::TemporaryFolder root;
  std::filesystem::create_directories(root.path() / "sys/devices/system/node/node1");
  std::ofstream(root.path() / "sys/devices/system/node/node1/cpulist") << "2-3\n";
  const std::vector<unsigned> usable{0, 1, 2};
  const auto refusal = [&](const std::string& keys) -> std::string {
    const Site site = site_of("name = \"x\"\n" + kServer + keys + kClient);
    try {
      check_cores(site.hosts[0], usable, root.path());
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(""), "");
  EXPECT_EQ(refusal("cores = [0, 2]\n"), "");
  EXPECT_EQ(refusal("cores = [2]\nnuma_node = 1\n"), "");
  EXPECT_EQ(refusal("cores = [0, 3]\n"),
            "lab.toml:5: host s: core 3 does not exist or may not be used here; choose from 0, 1, "
            "2, or start mpirun with --bind-to none");
  EXPECT_EQ(refusal("cores = [1]\nnuma_node = 1\n"),
            "lab.toml:5: host s: core 1 is not of NUMA node 1, which has 2, 3; name some of these, "
            "or another node");
  EXPECT_EQ(refusal("numa_node = 7\n"),
            "lab.toml:5: host s: this machine has no NUMA node 7; see lscpu");
}

TEST(Site, ReadsListsOfCoresAsLinuxWritesThem) {
  EXPECT_EQ(parse_core_list(""), (std::vector<unsigned>{}));
  EXPECT_EQ(parse_core_list("5"), (std::vector<unsigned>{5}));
  EXPECT_EQ(parse_core_list("0-2,8,10-11\n"), (std::vector<unsigned>{0, 1, 2, 8, 10, 11}));
}

TEST(Site, ThisProcessMayUseSomeCore) { EXPECT_FALSE(usable_cores().empty()); }

}  // namespace
}  // namespace perdura::harness
