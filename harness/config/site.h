// A site: the properties of a cluster that do not depend on what is run on it (docs/cluster.md). It
// is separate from experiments, so that the same experiment can run at several sites.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/config/experiment.h"
#include "harness/config/roles.h"

namespace perdura::harness {

class Document;

struct SiteHost {
  std::string name{};
  std::string role{};             // role of its nodes: "server", "client" (roles.h)
  std::vector<unsigned> cores{};  // cores for this host's threads, round robin; empty: not pinned
  std::string cores_where{};      // for messages
  std::optional<unsigned> numa_node{};
  std::string numa_where{};
  std::string device{};  // RDMA device of the node's process on verbs, such as mlx5_0
};

struct Site {
  std::string name{};
  std::string file{};      // the file that it was read from
  Located profile{};       // profile for experiments that name none
  Located pm_directory{};  // likewise
  std::vector<SiteHost> hosts{};
  std::string text{};  // the whole file; empty if no site was given
};

// Throws UsageError with file, line and the problem.
Site read_site(const Document& document);
Site load_site(const std::filesystem::path& file);

// Fills in what the experiment leaves open.
void apply_site(const Site& site, Experiment& experiment);

// The host on whose cores a node's threads run, on a platform of real threads: nodes are assigned
// round robin to the hosts of their role. Null without a site.
const SiteHost* host_of_node(const Site& site, const Roles& roles, NodeId node);

// Throws UsageError if a site names hosts, but none for one of the roles.
void check_roles(const Site& site, const Roles& roles);

// Throws UsageError unless every rank is on a host of the site, and the ranks of all roles but the
// last are on the hosts of their role; the last role takes the remaining hosts. Ranks that are all
// on one host are not checked. `hosts` are the host names that the ranks see, by rank, compared up
// to the first dot. Hosts given by address cannot be compared and are skipped.
void check_hosts_of_ranks(const Site& site, const Roles& roles, std::span<const std::string> hosts);

// Open MPI's hostfile for the site: a slot for each host of each role, in the order of nodes, which
// are the ranks. Throws UsageError without a site.
std::string hostfile(const Site& site, const Roles& roles);

// Throws UsageError if the host's cores are not among `usable`, or do not belong to its NUMA node
// according to `root`/sys.
void check_cores(const SiteHost& host, std::span<const unsigned> usable,
                 const std::filesystem::path& root = "/");
// The cores that the calling process may use.
std::vector<unsigned> usable_cores();

// The numbers of a list in Linux's notation: "0-2,8" is 0, 1, 2, 8.
std::vector<unsigned> parse_core_list(std::string_view list);

}  // namespace perdura::harness
