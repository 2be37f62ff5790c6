#include "library/mcas/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "library/choice.h"
#include "library/mcas/member.h"
#include "platform/base/device_section.h"
#include "platform/base/error.h"
#include "platform/base/parameter_values.h"
#include "platform/base/plain_name.h"
#include "platform/base/toml_section.h"
#include "systems/mcas/mcas.h"
#include "systems/mcas/parameters.h"
#include "systems/parameter_reader.h"

namespace perdura::mcas {

namespace {

using systems::kMcasObjects;

constexpr std::array<std::string_view, 2> kCompletions{"event", "polling"};
constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 44;

// Keys of a shard other than the parameters of the system.
constexpr std::array kShardKeys = std::to_array<Parameter>({
    {.name = "directory", .type = Name{}},
    {.name = "emulated", .type = Flag{}, .usual = false},
    {.name = "memory", .type = Count{1, kMostMemory}},
    {.name = "max_message_value", .type = Count{0, systems::mcas::kLongestInMessage}},
    {.name = "sessions", .type = Count{1, 1U << 16}},
    {.name = "completion", .type = OneOf{kCompletions}, .usual = "event"},
});
// Keys of a shard that differ from shard to shard, so that [defaults] does not have them.
constexpr std::array kOwnKeys = std::to_array<Parameter>({
    {.name = "node", .type = Count{0, kMostShards - 1}},
    {.name = "address", .type = Name{}},
    {.name = "numa_node", .type = Count{0, 1023}},
});
// Keys that may be lists, with the type of an item.
constexpr Parameter kCores{.name = "cores", .type = Count{0, 1U << 16}};
constexpr std::string_view kPlugins = "plugins";

constexpr std::array<std::string_view, 2> kPlatforms{"shm", "verbs"};
constexpr std::array kTopKeys = std::to_array<Parameter>({
    {.name = "job", .type = Name{}},
    {.name = "platform", .type = OneOf{kPlatforms}, .usual = "shm"},
});

constexpr std::uint64_t kLongestPatience = 3'600'000;
constexpr std::array kClusterKeys = std::to_array<Parameter>({
    {.name = "heartbeat_ms", .type = Count{1, kLongestPatience}, .usual = 50},
    {.name = "patience_ms", .type = Count{1, kLongestPatience}, .usual = 1000},
});

// A list of names becomes one parameter: the names, separated by commas.
std::string joined_names(const TomlSection& section, const toml::array& list) {
  if (list.empty()) section.wrong(list, kPlugins, "names none; leave it out, or name some");
  std::vector<std::string> names;
  for (const toml::node& node : list) {
    const auto name = node.value_exact<std::string>();
    if (!name || name->empty() || name->find(',') != std::string::npos) {
      section.wrong(
          node, kPlugins,
          fmt::format("must be a list of names without commas, but has {}", words_for(node)));
    }
    names.push_back(*name);
  }
  return fmt::format("{}", fmt::join(names, ","));
}

// Reads the values of a table's parameters from a section that has no other keys.
ParameterValues read_all(const TomlSection& section, std::span<const Parameter> table) {
  section.allow_only(names_of(table));
  ParameterValues values(table);
  section.read(values);
  return values;
}

// Reads the keys that a shard and [defaults] have in common; a shard's replace the defaults.
void read_common(const TomlSection& section, ParameterValues& keys, GivenParameters& parameters) {
  section.read(keys);
  for (const Parameter& parameter : kMcasObjects.info.parameters) {
    const toml::node* const node = section.table().get(parameter.name);
    if (parameter.name == kPlugins && node != nullptr && node->is_array()) {
      parameters[std::string(kPlugins)] = joined_names(section, *node->as_array());
    } else {
      section.read(std::span(&parameter, 1), parameters);
    }
  }
}

std::vector<std::string_view> common_keys() {
  std::vector<std::string_view> known = names_of(kShardKeys);
  for (const std::string_view name : names_of(kMcasObjects.info.parameters)) known.push_back(name);
  return known;
}

Placement placement_of(const TomlSection& section, const ParameterValues& own) {
  Placement placement;
  if (const toml::node* const cores = section.table().get(kCores.name)) {
    if (!cores->is_array()) {
      section.wrong(*cores, kCores.name,
                    fmt::format("must be a list of numbers, but is {}", words_for(*cores)));
    }
    for (const toml::node& core : *cores->as_array()) {
      placement.cores.push_back(static_cast<unsigned>(section.value_of(core, kCores).number()));
    }
  }
  if (const auto node = own.number_if_given("numa_node")) {
    placement.numa_node = static_cast<unsigned>(*node);
  }
  return placement;
}

// Returns the address on which the process of a shard listens; empty except on `verbs`.
std::string address_of(const TomlSection& section, const ParameterValues& own,
                       const Network& network) {
  constexpr std::string_view kAddress = "address";
  const toml::node* const node = section.table().get(kAddress);
  if (!network.rdma) {
    if (node != nullptr) {
      section.wrong(*node, kAddress,
                    "is for platform = \"verbs\"; on shm clients find the shard by its job");
    }
    return "";
  }
  if (node == nullptr) {
    section.missing(kAddress, "on verbs it says where the shard listens, as in \"10.0.0.1:4711\"");
  }
  std::string address = own.text(kAddress);
  if (!is_address(address)) {
    section.wrong(*node, kAddress,
                  "must be one host's name or IPv4 address and a port, as in \"10.0.0.1:4711\"");
  }
  return address;
}

ShardConfig shard_of(const TomlSection& section, std::string_view name, const Network& network,
                     ParameterValues keys, GivenParameters parameters) {
  std::vector<std::string_view> known = names_of(kOwnKeys);
  known.push_back(kCores.name);
  for (const std::string_view key : common_keys()) known.push_back(key);
  section.allow_only(known);
  if (constexpr std::size_t kLongest = 100; !is_plain_name(name, kLongest)) {
    throw UsageError(
        fmt::format("{}: [{}]: the name of a shard has up to {} letters, digits, '-', '_' and '.'",
                    section.where(), section.name(), kLongest));
  }
  ParameterValues own(kOwnKeys);
  section.read(own);
  const auto node = own.number_if_given("node");
  if (!node) section.missing("node", "add the number by which clients reach the shard, node = ...");
  read_common(section, keys, parameters);
  const objects::Config usual;
  const auto number = [&](std::string_view key, std::uint64_t otherwise) {
    return keys.number_if_given(key).value_or(otherwise);
  };
  ShardConfig shard{
      .name = std::string(name),
      .node = static_cast<NodeId>(*node),
      .address = address_of(section, own, network),
      .directory = keys.text("directory"),
      .emulated = keys.flag("emulated"),
      .completion =
          keys.text("completion") == "polling" ? CompletionMode::polling : CompletionMode::event,
      .placement = placement_of(section, own),
      .store = {.memory = number("memory", usual.memory),
                .max_message_value = number("max_message_value", usual.max_message_value),
                .sessions = static_cast<std::uint32_t>(number("sessions", usual.sessions)),
                .parameters = std::move(parameters)}};
  const GivenParameters& given = shard.store.parameters;
  if (const auto peer = given.find("plugin_peer");
      peer != given.end() && peer->second.number() == shard.node) {
    throw UsageError(fmt::format("{}: plugin_peer in [{}] is {}, which is the shard itself",
                                 section.where("plugin_peer"), section.name(), shard.node));
  }
  try {
    systems::mcas::Parameters::of(shard.store);
  } catch (const systems::ParameterError& error) {
    throw UsageError(
        fmt::format("{}: [{}]: {}", section.where(error.parameter), section.name(), error.what()));
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: [{}]: {}", section.where(), section.name(), error.what()));
  }
  return shard;
}

systems::mcas::cluster::Timing timing_of(const TomlSection& root) {
  ParameterValues values(kClusterKeys);
  if (const auto section = root.section("cluster")) {
    values = read_all(*section, kClusterKeys);
    if (values.number("patience_ms") < 2 * values.number("heartbeat_ms")) {
      throw UsageError(fmt::format(
          "{}: patience_ms in [cluster] must be at least twice heartbeat_ms, which is {}",
          section->where("patience_ms"), values.number("heartbeat_ms")));
    }
  }
  return {.heartbeat = std::chrono::milliseconds(values.number("heartbeat_ms")),
          .patience = std::chrono::milliseconds(values.number("patience_ms"))};
}

Network network_of(const TomlSection& root, std::string_view platform) {
  Network network{.rdma = platform == "verbs"};
  const auto section = root.section("verbs");
  if (!section) return network;
  if (!network.rdma) {
    root.wrong(section->table(), "verbs",
               "is for platform = \"verbs\", which the file does not say");
  }
  const DeviceSection device = DeviceSection::read(*section);
  network.device = {device.name, device.port, device.gid_index, device.on_demand_paging};
  return network;
}

// A file describes all shards of its job, so a peer that is not in it does not exist.
void check_peers(const TomlSection& shards, const Config& config) {
  for (const ShardConfig& shard : config.shards) {
    const auto peer = shard.store.parameters.find("plugin_peer");
    if (peer == shard.store.parameters.end()) continue;
    const auto node = peer->second.number();
    const auto is_peer = [&](const ShardConfig& other) { return other.node == node; };
    if (std::any_of(config.shards.begin(), config.shards.end(), is_peer)) continue;
    std::vector<std::string> known;
    for (const ShardConfig& other : config.shards) {
      known.push_back(fmt::format("{} ({})", other.node, other.name));
    }
    const std::string name = fmt::format("shards.{}", shard.name);
    throw UsageError(
        fmt::format("{}: plugin_peer of [{}] is {}, which is the node of no shard; there are: {}",
                    shards.where(shard.name), name, node, fmt::join(known, ", ")));
  }
}

void read_shards(const TomlSection& root, Config& config) {
  ParameterValues keys(kShardKeys);
  GivenParameters parameters;
  if (const auto defaults = root.section("defaults")) {
    defaults->allow_only(common_keys());
    read_common(*defaults, keys, parameters);
  }
  const auto shards = root.section("shards");
  if (!shards || shards->table().empty()) root.missing("shards", "add one, [shards.NAME]");
  for (const auto& [name, node] : shards->table()) {
    const TomlSection section = *shards->section(name.str());
    ShardConfig shard = shard_of(section, name.str(), config.network, keys, parameters);
    for (const ShardConfig& other : config.shards) {
      const bool same_node = other.node == shard.node;
      if (!same_node && (shard.address.empty() || other.address != shard.address)) continue;
      const std::string_view key = same_node ? "node" : "address";
      throw UsageError(fmt::format(
          "{}: {} in [{}] is {}, as that of [shards.{}]", section.where(key), key, section.name(),
          same_node ? std::to_string(shard.node) : shard.address, other.name));
    }
    config.shards.push_back(std::move(shard));
  }
  std::sort(config.shards.begin(), config.shards.end(),
            [](const ShardConfig& a, const ShardConfig& b) { return a.node < b.node; });
  check_peers(*shards, config);
}

Config config_of(const TomlSection& root) {
  std::vector<std::string_view> known = names_of(kTopKeys);
  known.insert(known.end(), {"verbs", "defaults", "shards", "cluster"});
  root.allow_only(known);
  Config config;
  ParameterValues keys(kTopKeys);
  root.read(keys);
  config.job = keys.text("job");
  if (!keys.given("job")) {
    root.missing("job", "add a name by which shards and clients find each other, job = \"...\"");
  }
  try {
    library::check_job(config.job);
  } catch (const std::invalid_argument& problem) {
    throw UsageError(fmt::format("{}: job: {}", root.where("job"), problem.what()));
  }
  config.network = network_of(root, keys.text("platform"));
  read_shards(root, config);
  config.cluster = timing_of(root);
  return config;
}

}  // namespace

Config Config::read(const std::string& file) { return config_of(TomlFile::read(file).top()); }

Config Config::parse(std::string_view text, const std::string& name) {
  return config_of(TomlFile::parse(std::string(text), name).top());
}

const ShardConfig& Config::shard(std::string_view name) const {
  const auto found = std::find_if(shards.begin(), shards.end(),
                                  [&](const ShardConfig& shard) { return shard.name == name; });
  if (found != shards.end()) return *found;
  std::vector<std::string_view> names;
  for (const ShardConfig& shard : shards) names.push_back(shard.name);
  throw UsageError(
      fmt::format("there is no shard '{}'; there are: {}", name, fmt::join(names, ", ")));
}

}  // namespace perdura::mcas
