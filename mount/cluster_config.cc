#include "mount/cluster_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "platform/base/error.h"
#include "platform/base/parameter_values.h"
#include "platform/base/plain_name.h"
#include "platform/base/toml_section.h"

namespace perdura::mount {

namespace {

using fs::FsRole;

constexpr Bytes kLargestSize = Bytes{1} << 44;
constexpr std::uint32_t kMostGroups = 65535;
constexpr std::array kRoles{FsRole::metadata, FsRole::mirror, FsRole::store};

// By ClusterPlatform.
constexpr std::array<std::string_view, 3> kPlatforms{"sockets", "verbs", "shm"};
constexpr std::array kFileKeys = std::to_array<Parameter>({
    {.name = "name", .type = Name{}},
    {.name = "platform", .type = OneOf{kPlatforms}, .usual = "sockets"},
    {.name = "size", .type = Count{1, kLargestSize}},
});
constexpr std::array kServerKeys = std::to_array<Parameter>({
    {.name = "role", .type = Name{}},
    {.name = "group", .type = Count{0, kMostGroups}, .usual = 0},
    {.name = "address", .type = Name{}},
    {.name = "directory", .type = Name{}},
});

FsRole role_of(const TomlSection& section, const ParameterValues& keys) {
  if (!keys.given("role"))
    section.missing("role", "add role = \"metadata\", \"mirror\" or \"store\"");
  const std::string given = keys.text("role");
  for (const FsRole role : kRoles) {
    if (to_string(role) == given) return role;
  }
  section.wrong(*section.table().get("role"), "role",
                fmt::format("must be \"metadata\", \"mirror\" or \"store\", but is \"{}\"", given));
}

ClusterPlatform platform_of(const ParameterValues& keys) {
  const auto found = std::ranges::find(kPlatforms, keys.text("platform"));
  return static_cast<ClusterPlatform>(found - kPlatforms.begin());
}

fabric::tcp::HostAndPort address_of(const TomlSection& section, const ParameterValues& keys,
                                    ClusterPlatform platform) {
  if (platform == ClusterPlatform::shm) {
    if (!keys.given("address")) return {};
    section.wrong(*section.table().get("address"), "address",
                  "is for other platforms than \"shm\", where all processes are on one host; "
                  "leave it out");
  }
  if (!keys.given("address")) {
    section.missing("address", "add where it listens, address = \"HOST:PORT\"");
  }
  const auto address = fabric::tcp::host_and_port(keys.text("address"));
  if (address) return *address;
  section.wrong(*section.table().get("address"), "address",
                "must be a host's name or IPv4 address and a port, as in \"10.0.0.1:4710\"");
}

// The same directory by one name, so that two servers that have it are noticed.
std::string directory_in(const std::string& given) {
  const std::filesystem::path path = std::filesystem::path(given).lexically_normal();
  return path.has_filename() ? path.string() : path.parent_path().string();
}

ConfiguredServer server_of(const TomlSection& section, std::string_view name, NodeId node,
                           ClusterPlatform platform) {
  section.allow_only(names_of(kServerKeys));
  ParameterValues keys(kServerKeys);
  section.read(keys);
  ConfiguredServer server{.name = std::string(name)};
  server.part = {node, role_of(section, keys), static_cast<std::uint32_t>(keys.number("group"))};
  if (server.part.role != FsRole::store && keys.given("group")) {
    section.wrong(*section.table().get("group"), "group", "is for stores only; leave it out");
  }
  server.address = address_of(section, keys, platform);
  server.directory = directory_in(keys.text("directory"));
  if (server.directory.empty()) {
    section.missing("directory", "add where its persistent memory is, directory = \"/mnt/pmem0\"");
  }
  if (server.directory.find('\0') != std::string::npos) {
    section.wrong(*section.table().get("directory"), "directory",
                  "has a character that names of files cannot have");
  }
  if (!server.directory.starts_with('/')) {
    section.wrong(*section.table().get("directory"), "directory",
                  "must begin with '/', since each process has a working directory of its own");
  }
  return server;
}

DeviceSection device_of(const TomlSection& top, ClusterPlatform platform) {
  const auto section = top.section("verbs");
  if (!section) return {};
  if (platform == ClusterPlatform::verbs) return DeviceSection::read(*section);
  top.wrong(section->table(), "verbs", "is for platform = \"verbs\", which the file does not say");
}

// Two servers of one host must not have the same memory, nor the same ports. `ports` and
// `ports_of_other`: how many each has, from that of its address on.
void check_apart(const TomlSection& section, const ConfiguredServer& server, std::uint32_t ports,
                 const ConfiguredServer& other, std::uint32_t ports_of_other) {
  if (server.address.host != other.address.host) return;
  if (server.directory == other.directory) {
    section.wrong(*section.table().get("directory"), "directory",
                  fmt::format("is \"{}\", as that of [servers.{}] of the same host",
                              server.directory, other.name));
  }
  if (ports == 0) return;
  if (server.address.port < other.address.port + ports_of_other &&
      other.address.port < server.address.port + ports) {
    section.wrong(*section.table().get("address"), "address",
                  fmt::format("takes the ports {} to {}, of which [servers.{}] has some",
                              server.address.port, server.address.port + ports - 1, other.name));
  }
}

}  // namespace

ClusterConfig ClusterConfig::read(const fs::FsSystem& system, const std::string& file) {
  const TomlFile toml = TomlFile::read(file);
  const TomlSection top = toml.top();
  std::vector<std::string_view> known = names_of(kFileKeys);
  known.insert(known.end(), {"verbs", "parameters", "servers"});
  top.allow_only(known);
  ParameterValues keys(kFileKeys);
  top.read(keys);
  ClusterConfig cluster;
  cluster.file_ = std::filesystem::absolute(file).lexically_normal().string();
  cluster.name_ = keys.text("name");
  if (!keys.given("name")) top.missing("name", "add the name of the file system, name = \"home\"");
  if (constexpr std::size_t kLongest = 100; !is_plain_name(cluster.name_, kLongest)) {
    top.wrong(*top.table().get("name"), "name",
              fmt::format("has up to {} letters, digits, '-', '_' and '.'", kLongest));
  }
  if (!keys.given("size")) top.missing("size", "add the bytes of data of each group, size = ...");
  cluster.config_.size = keys.number("size");
  if (const auto parameters = top.section("parameters")) {
    parameters->allow_only(names_of(system.info.parameters));
    parameters->read(system.info.parameters, cluster.config_.parameters);
  }
  cluster.platform_ = platform_of(keys);
  cluster.device_ = device_of(top, cluster.platform_);
  const auto servers = top.section("servers");
  if (!servers || servers->table().empty()) top.missing("servers", "add one, [servers.NAME]");
  for (const auto& [name, node] : servers->table()) {
    const TomlSection section = *servers->section(name.str());
    if (constexpr std::size_t kLongest = 100; !is_plain_name(name.str(), kLongest)) {
      throw UsageError(
          fmt::format("{}: the name of a server has up to {} letters, digits, '-', "
                      "'_' and '.'",
                      section.where(), kLongest));
    }
    cluster.servers_.push_back(
        server_of(section, name.str(), cluster.first_client(), cluster.platform_));
    cluster.config_.servers.push_back(cluster.servers_.back().part);
  }
  try {
    system.check(cluster.config_);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", file, error.what()));
  }
  for (const ConfiguredServer& server : cluster.servers_) {
    const auto ports = [&](const ConfiguredServer& of) -> std::uint32_t {
      if (cluster.platform_ == ClusterPlatform::shm) return 0;
      if (cluster.platform_ == ClusterPlatform::verbs) return 1;
      return system.cluster->workers(cluster.config_, of.part.node);
    };
    for (const ConfiguredServer& other : cluster.servers_) {
      if (&other == &server) break;
      check_apart(*servers->section(server.name), server, ports(server), other, ports(other));
    }
  }
  return cluster;
}

const ConfiguredServer& ClusterConfig::server(std::string_view name) const {
  std::vector<std::string_view> names;
  for (const ConfiguredServer& server : servers_) {
    if (server.name == name) return server;
    names.push_back(server.name);
  }
  throw UsageError(fmt::format("{}: there is no server '{}'; there are: {}", file_, name,
                               fmt::join(names, ", ")));
}

}  // namespace perdura::mount
