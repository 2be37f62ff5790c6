#include "harness/config/site.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <fstream>
#include <iterator>
#include <set>

#include "harness/config/document.h"
#include "platform/base/error.h"

namespace perdura::harness {
namespace {

constexpr std::uint64_t kMostCores = CPU_SETSIZE;
constexpr std::uint64_t kMostNumaNodes = 1023;

std::vector<unsigned> read_cores(const TomlSection& host, const toml::node& node) {
  const toml::array* list = node.as_array();
  if (list == nullptr || list->empty()) {
    host.wrong(
        node, "cores",
        fmt::format("must be a list of core numbers, such as [0, 1], but is {}; leave it out "
                    "for any",
                    list == nullptr ? words_for(node) : "empty"));
  }
  std::vector<unsigned> cores;
  for (const toml::node& item : *list) {
    const auto core = static_cast<unsigned>(host.number_of(item, "cores", 0, kMostCores - 1));
    if (std::find(cores.begin(), cores.end(), core) != cores.end()) {
      host.wrong(item, "cores", fmt::format("names core {} twice", core));
    }
    cores.push_back(core);
  }
  return cores;
}

SiteHost read_host(const TomlSection& host) {
  constexpr std::array<std::string_view, 5> known{"name", "role", "cores", "numa_node", "device"};
  host.allow_only(known);
  SiteHost read;
  read.name = host.text("name").value_or("");
  if (read.name.empty()) {
    throw UsageError(fmt::format("{}: [[host]] needs name = \"...\"", host.where("name")));
  }
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view(".-_:").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!std::all_of(read.name.begin(), read.name.end(), allowed)) {
    throw UsageError(
        fmt::format("{}: '{}' cannot be the name of a host; use letters, digits, '.', '-' and '_', "
                    "or an address",
                    host.where("name"), read.name));
  }
  read.role = host.text("role").value_or("");
  if (read.role.empty()) {
    throw UsageError(fmt::format("{}: host {} needs role = \"server\", \"client\" or another role",
                                 host.where("role"), read.name));
  }
  if (const toml::node* cores = host.table().get("cores")) read.cores = read_cores(host, *cores);
  read.cores_where = host.where("cores");
  if (const auto numa = host.number("numa_node", 0, kMostNumaNodes)) {
    read.numa_node = static_cast<unsigned>(*numa);
  }
  read.numa_where = host.where("numa_node");
  read.device = host.text("device").value_or("");
  return read;
}

void check_hosts(const Document& document, const std::vector<SiteHost>& hosts) {
  std::set<std::string> names;
  for (const SiteHost& host : hosts) {
    // One host may have both roles; on shm it always has.
    if (names.insert(host.name + ' ' + host.role).second) continue;
    throw UsageError(
        fmt::format("{}: host {} has the same role twice; keep one", document.name(), host.name));
  }
}

std::vector<const SiteHost*> hosts_of(const Site& site, std::string_view role) {
  std::vector<const SiteHost*> hosts;
  for (const SiteHost& host : site.hosts) {
    if (host.role == role) hosts.push_back(&host);
  }
  return hosts;
}

bool is_address(std::string_view host) {
  return host.find(':') != std::string_view::npos ||
         host.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace

Site read_site(const Document& document) {
  constexpr std::array<std::string_view, 4> known{"name", "profile", "pm_directory", "host"};
  const TomlSection top = document.top();
  top.allow_only(known);
  Site site;
  site.name = top.text("name").value_or("");
  if (site.name.empty()) top.missing("name", "add name = \"...\"");
  site.profile = {top.text("profile").value_or(""), top.where("profile")};
  site.pm_directory = {top.text("pm_directory").value_or(""), top.where("pm_directory")};
  site.text = document.text();
  site.file = document.name();
  for (const TomlSection& host : top.sections("host")) site.hosts.push_back(read_host(host));
  check_hosts(document, site.hosts);
  return site;
}

Site load_site(const std::filesystem::path& file) { return read_site(Document::read(file)); }

void apply_site(const Site& site, Experiment& experiment) {
  if (experiment.profile.text.empty()) experiment.profile = site.profile;
  for (Located* directory : {&experiment.shm.pm_directory, &experiment.verbs.pm_directory}) {
    if (directory->text.empty()) *directory = site.pm_directory;
  }
}

const SiteHost* host_of_node(const Site& site, const Roles& roles, NodeId node) {
  const auto [role, index] = roles.assignment_of(node);
  const auto hosts = hosts_of(site, role.name);
  return hosts.empty() ? nullptr : hosts[index % hosts.size()];
}

void check_roles(const Site& site, const Roles& roles) {
  if (site.hosts.empty()) return;
  for (const Role& role : roles) {
    if (!hosts_of(site, role.name).empty()) continue;
    throw UsageError(
        fmt::format("{}: no [[host]] has role \"{}\", and this experiment needs {}; add it there",
                    site.file, role.name, roles.to_text()));
  }
}

void check_hosts_of_ranks(const Site& site, const Roles& roles,
                          std::span<const std::string> hosts) {
  const auto short_name = [](std::string_view host) {
    std::string name(host.substr(0, host.find('.')));
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return name;
  };
  const auto is_on = [&](const std::string& host, const SiteHost& of_site) {
    return is_address(of_site.name) || short_name(of_site.name) == short_name(host);
  };
  const bool one_host = std::all_of(hosts.begin(), hosts.end(),
                                    [&](const std::string& host) { return host == hosts[0]; });
  if (site.hosts.empty() || one_host) return;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    if (std::none_of(site.hosts.begin(), site.hosts.end(),
                     [&](const SiteHost& of_site) { return is_on(hosts[rank], of_site); })) {
      throw UsageError(
          fmt::format("{}: rank {} is on host {}, which is not one of this site's; add it there, "
                      "or leave it out of "
                      "mpirun's hostfile",
                      site.file, rank, hosts[rank]));
    }
  }
  for (NodeId node = 0; node < hosts.size() && node < roles.node_count(); ++node) {
    const Role& role = roles.assignment_of(node).role;
    if (&role == &*std::prev(roles.end())) break;
    const auto of_role = hosts_of(site, role.name);
    if (std::any_of(of_role.begin(), of_role.end(),
                    [&](const SiteHost* host) { return is_on(hosts[node], *host); })) {
      continue;
    }
    throw UsageError(
        fmt::format("{}: rank {} is on host {}, but the {} is {}; let mpirun's hostfile {} it, as "
                    "'perdura plan "
                    "--hostfile' does",
                    site.file, node, hosts[node], role.name, host_of_node(site, roles, node)->name,
                    node == 0 ? "begin with" : "have"));
  }
}

std::string hostfile(const Site& site, const Roles& roles) {
  if (site.hosts.empty()) throw UsageError("a hostfile is made from a site: name one with --site");
  std::string text;
  for (const Role& role : roles) {
    for (const SiteHost* host : hosts_of(site, role.name)) {
      text += fmt::format("{} slots=1  # {}\n", host->name, role.name);
    }
  }
  return text;
}

void check_cores(const SiteHost& host, std::span<const unsigned> usable,
                 const std::filesystem::path& root) {
  std::vector<unsigned> of_node;
  if (host.numa_node) {
    std::ifstream list(root /
                       fmt::format("sys/devices/system/node/node{}/cpulist", *host.numa_node));
    std::string line;
    if (!std::getline(list, line)) {
      throw UsageError(fmt::format("{}: host {}: this machine has no NUMA node {}; see lscpu",
                                   host.numa_where, host.name, *host.numa_node));
    }
    of_node = parse_core_list(line);
  }
  for (const unsigned core : host.cores) {
    if (std::find(usable.begin(), usable.end(), core) == usable.end()) {
      throw UsageError(fmt::format(
          "{}: host {}: core {} does not exist or may not be used here; choose from {}, or start "
          "mpirun with --bind-to none",
          host.cores_where, host.name, core, fmt::join(usable, ", ")));
    }
    if (host.numa_node && std::find(of_node.begin(), of_node.end(), core) == of_node.end()) {
      throw UsageError(fmt::format(
          "{}: host {}: core {} is not of NUMA node {}, which has {}; name some of these, or "
          "another node",
          host.cores_where, host.name, core, *host.numa_node, fmt::join(of_node, ", ")));
    }
  }
}

std::vector<unsigned> usable_cores() {
  std::vector<unsigned> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (unsigned core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

std::vector<unsigned> parse_core_list(std::string_view list) {
  std::vector<unsigned> cores;
  const auto number = [&list]() -> unsigned {
    unsigned value = 0;
    const auto end = std::from_chars(list.data(), list.data() + list.size(), value).ptr;
    list.remove_prefix(static_cast<std::size_t>(end - list.data()));
    return value;
  };
  while (!list.empty() && list.front() >= '0' && list.front() <= '9') {
    const unsigned first = number();
    unsigned last = first;
    if (list.starts_with('-')) {
      list.remove_prefix(1);
      last = number();
    }
    for (unsigned core = first; core <= last; ++core) cores.push_back(core);
    if (list.starts_with(',')) list.remove_prefix(1);
  }
  return cores;
}

}  // namespace perdura::harness
