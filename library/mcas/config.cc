#include "library/mcas/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <toml++/toml.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include "library/choice.h"
#include "library/mcas/member.h"
#include "platform/base/error.h"
#include "platform/base/parameter_values.h"
#include "platform/base/path_kind.h"
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
constexpr Parameter kNode{.name = "node", .type = Count{0, kMostShards - 1}};
constexpr Parameter kNumaNode{.name = "numa_node", .type = Count{0, 1023}};
constexpr Parameter kCore{.name = "cores", .type = Count{0, 1U << 16}};
constexpr std::string_view kPlugins = "plugins";

constexpr std::array<std::string_view, 2> kPlatforms{"shm", "verbs"};
constexpr Parameter kPlatform{.name = "platform", .type = OneOf{kPlatforms}, .usual = "shm"};
constexpr Parameter kAddress{.name = "address", .type = Name{}};
constexpr std::array kVerbsKeys = std::to_array<Parameter>({
    {.name = "device", .type = Name{}},
    {.name = "port", .type = Count{1, 255}},
    {.name = "gid_index", .type = Count{0, 65535}},
    {.name = "odp", .type = Flag{}, .usual = false},
});

constexpr std::uint64_t kLongestPatience = 3'600'000;
constexpr std::array kClusterKeys = std::to_array<Parameter>({
    {.name = "heartbeat_ms", .type = Count{1, kLongestPatience}, .usual = 50},
    {.name = "patience_ms", .type = Count{1, kLongestPatience}, .usual = 1000},
});

// A table of the file while it is read.
class Section {
 public:
  Section(const std::string& file, const toml::table& table, std::string name)
      : file_(file), table_(table), name_(std::move(name)) {}

  const toml::table& table() const { return table_; }
  const std::string& name() const { return name_; }

  std::string where(const toml::node& node) const {
    return fmt::format("{}:{}", file_, node.source().begin.line);
  }
  std::string where(std::string_view key) const {
    const toml::node* const node = table_.get(key);
    return where(node == nullptr ? table_ : *node);
  }
  [[noreturn]] void wrong(const toml::node& node, std::string_view key,
                          std::string_view what) const {
    throw UsageError(fmt::format("{}: '{}' in {} {}", where(node), key, title(), what));
  }
  [[noreturn]] void missing(std::string_view key, std::string_view what) const {
    throw UsageError(
        fmt::format("{}: '{}' is missing in {}: {}", where(table_), key, title(), what));
  }
  void allow_only(const std::set<std::string_view>& known) const {
    for (const auto& [key, node] : table_) {
      if (known.contains(key.str())) continue;
      throw UsageError(fmt::format("{}: unknown key '{}' in {}; known are: {}", where(node),
                                   key.str(), title(), fmt::join(known, ", ")));
    }
  }
  // Null if the key is absent.
  const toml::table* find_table(std::string_view key, std::string_view as) const {
    const toml::node* const node = table_.get(key);
    if (node == nullptr) return nullptr;
    if (!node->is_table()) wrong(*node, key, fmt::format("must be a section, [{}]", as));
    return node->as_table();
  }
  std::optional<ParameterValue> value(const Parameter& parameter) const {
    const toml::node* const node = table_.get(parameter.name);
    if (node == nullptr) return std::nullopt;
    return value_of(*node, parameter);
  }
  ParameterValue value_of(const toml::node& node, const Parameter& parameter) const {
    const auto value = plain_value(node);
    // A list or a section has no valid type; NaN stands for it, since it fits no parameter.
    const std::string problem =
        parameter.problem_with(value.value_or(ParameterValue(std::nan(""))));
    if (!problem.empty()) wrong(node, parameter.name, problem);
    return parameter.of_type(*value);
  }

 private:
  static std::optional<ParameterValue> plain_value(const toml::node& node) {
    if (const auto text = node.value_exact<std::string>()) return *text;
    if (const auto flag = node.value_exact<bool>()) return *flag;
    if (const auto real = node.value_exact<double>()) return *real;
    const auto number = node.value_exact<std::int64_t>();
    if (!number) return std::nullopt;
    // Whole numbers are unsigned, so a negative one is kept as a decimal number, which fits no
    // parameter.
    return *number < 0 ? ParameterValue(static_cast<double>(*number)) : ParameterValue(*number);
  }
  std::string title() const { return name_.empty() ? "the file" : fmt::format("[{}]", name_); }

  const std::string& file_;
  const toml::table& table_;
  std::string name_;
};

// A list of names becomes one parameter: the names, separated by commas.
std::string joined_names(const Section& section, const toml::array& list) {
  if (list.empty()) section.wrong(list, kPlugins, "names none; leave it out, or name some");
  std::vector<std::string> names;
  for (const toml::node& node : list) {
    const auto name = node.value_exact<std::string>();
    if (!name || name->empty() || name->find(',') != std::string::npos) {
      section.wrong(node, kPlugins, "must be a list of names without commas");
    }
    names.push_back(*name);
  }
  return fmt::format("{}", fmt::join(names, ","));
}

// Reads the keys that a shard and [defaults] have in common; a shard's replace the defaults.
void read_common(const Section& section, ParameterValues& keys, GivenParameters& parameters) {
  for (const Parameter& parameter : kShardKeys) {
    if (const auto value = section.value(parameter)) {
      keys.set(parameter.name, *value, section.where(parameter.name));
    }
  }
  for (const Parameter& parameter : kMcasObjects.info.parameters) {
    const toml::node* const node = section.table().get(parameter.name);
    if (node == nullptr) continue;
    const toml::array* const list = parameter.name == kPlugins ? node->as_array() : nullptr;
    parameters[std::string(parameter.name)] = list == nullptr
                                                  ? section.value_of(*node, parameter)
                                                  : ParameterValue(joined_names(section, *list));
  }
}

std::set<std::string_view> common_keys() {
  std::set<std::string_view> known;
  for (const Parameter& parameter : kShardKeys) known.insert(parameter.name);
  for (const Parameter& parameter : kMcasObjects.info.parameters) known.insert(parameter.name);
  return known;
}

Placement placement_of(const Section& section) {
  Placement placement;
  if (const toml::node* const cores = section.table().get(kCore.name)) {
    if (!cores->is_array()) section.wrong(*cores, kCore.name, "must be a list of numbers");
    for (const toml::node& core : *cores->as_array()) {
      placement.cores.push_back(static_cast<unsigned>(section.value_of(core, kCore).number()));
    }
  }
  if (const auto node = section.value(kNumaNode)) {
    placement.numa_node = static_cast<unsigned>(node->number());
  }
  return placement;
}

bool is_file_name(std::string_view name) {
  constexpr std::size_t kLongest = 100;
  return !name.empty() && name.size() <= kLongest && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
         });
}

// Returns the address on which the process of a shard listens; empty except on `verbs`.
std::string address_of(const Section& section, const Network& network) {
  const toml::node* const node = section.table().get(kAddress.name);
  if (!network.rdma) {
    if (node != nullptr) {
      section.wrong(*node, kAddress.name,
                    "is for platform = \"verbs\"; on shm clients find the shard by its job");
    }
    return "";
  }
  if (node == nullptr) {
    section.missing(kAddress.name, "on verbs, where the shard listens, as in \"10.0.0.1:4711\"");
  }
  std::string address = section.value(kAddress)->text();
  if (!is_address(address)) {
    section.wrong(*node, kAddress.name,
                  "must be one host's name or IPv4 address and a port, as in \"10.0.0.1:4711\"");
  }
  return address;
}

ShardConfig shard_of(const Section& section, std::string_view name, const Network& network,
                     ParameterValues keys, GivenParameters parameters) {
  std::set<std::string_view> known = common_keys();
  known.insert({kNode.name, kAddress.name, kCore.name, kNumaNode.name});
  section.allow_only(known);
  if (!is_file_name(name)) {
    throw UsageError(
        fmt::format("{}: [{}]: the name of a shard has up to 100 letters, digits, '-', '_' and '.'",
                    section.where(section.table()), section.name()));
  }
  const auto node = section.value(kNode);
  if (!node) section.missing(kNode.name, "the number by which clients reach the shard");
  read_common(section, keys, parameters);
  const objects::Config usual;
  const auto number = [&](std::string_view key, std::uint64_t otherwise) {
    return keys.number_if_given(key).value_or(otherwise);
  };
  ShardConfig shard{
      .name = std::string(name),
      .node = static_cast<NodeId>(node->number()),
      .address = address_of(section, network),
      .directory = keys.text("directory"),
      .emulated = keys.flag("emulated"),
      .completion =
          keys.text("completion") == "polling" ? CompletionMode::polling : CompletionMode::event,
      .placement = placement_of(section),
      .store = {.memory = number("memory", usual.memory),
                .max_message_value = number("max_message_value", usual.max_message_value),
                .sessions = static_cast<std::uint32_t>(number("sessions", usual.sessions)),
                .parameters = std::move(parameters)}};
  const GivenParameters& given = shard.store.parameters;
  if (const auto peer = given.find("plugin_peer");
      peer != given.end() && peer->second.number() == shard.node) {
    throw UsageError(fmt::format("{}: 'plugin_peer' in [{}] is {}, which is the shard itself",
                                 section.where("plugin_peer"), section.name(), shard.node));
  }
  try {
    systems::mcas::Parameters::of(shard.store);
  } catch (const systems::ParameterError& error) {
    throw UsageError(
        fmt::format("{}: [{}]: {}", section.where(error.parameter), section.name(), error.what()));
  } catch (const UsageError& error) {
    throw UsageError(
        fmt::format("{}: [{}]: {}", section.where(section.table()), section.name(), error.what()));
  }
  return shard;
}

systems::mcas::cluster::Timing timing_of(const Section& root, const std::string& file) {
  ParameterValues values(kClusterKeys);
  if (const toml::table* const table = root.find_table("cluster", "cluster")) {
    const Section section(file, *table, "cluster");
    std::set<std::string_view> known;
    for (const Parameter& parameter : kClusterKeys) {
      known.insert(parameter.name);
      if (const auto value = section.value(parameter)) values.set(parameter.name, *value);
    }
    section.allow_only(known);
    if (values.number("patience_ms") < 2 * values.number("heartbeat_ms")) {
      throw UsageError(fmt::format(
          "{}: 'patience_ms' in [cluster] must be at least twice 'heartbeat_ms', which is {}",
          section.where("patience_ms"), values.number("heartbeat_ms")));
    }
  }
  return {.heartbeat = std::chrono::milliseconds(values.number("heartbeat_ms")),
          .patience = std::chrono::milliseconds(values.number("patience_ms"))};
}

Network network_of(const Section& root, const std::string& file) {
  const auto platform = root.value(kPlatform);
  Network network{.rdma = platform && platform->text() == "verbs"};
  const toml::table* const table = root.find_table("verbs", "verbs");
  if (table == nullptr) return network;
  if (!network.rdma) {
    root.wrong(*table, "verbs", "is for platform = \"verbs\", which the file does not say");
  }
  const Section section(file, *table, "verbs");
  ParameterValues values(kVerbsKeys);
  std::set<std::string_view> known;
  for (const Parameter& parameter : kVerbsKeys) {
    known.insert(parameter.name);
    if (const auto value = section.value(parameter)) values.set(parameter.name, *value);
  }
  section.allow_only(known);
  network.device = {.name = values.text("device"), .on_demand_paging = values.flag("odp")};
  if (const auto port = values.number_if_given("port")) {
    network.device.port = static_cast<unsigned>(*port);
  }
  if (const auto index = values.number_if_given("gid_index")) {
    network.device.gid_index = static_cast<unsigned>(*index);
  }
  return network;
}

// A file describes all shards of its job, so a peer that is not in it does not exist.
void check_peers(const Section& shards, const Config& config) {
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
        fmt::format("{}: 'plugin_peer' of [{}] is {}, which is the node of no shard; there are: {}",
                    shards.where(shard.name), name, node, fmt::join(known, ", ")));
  }
}

void read_shards(const Section& root, const std::string& file, Config& config) {
  ParameterValues keys(kShardKeys);
  GivenParameters parameters;
  if (const toml::table* const table = root.find_table("defaults", "defaults")) {
    const Section defaults(file, *table, "defaults");
    defaults.allow_only(common_keys());
    read_common(defaults, keys, parameters);
  }
  const toml::table* const shards = root.find_table("shards", "shards.NAME");
  if (shards == nullptr || shards->empty()) root.missing("shards", "name one by [shards.NAME]");
  const Section all(file, *shards, "shards");
  for (const auto& [name, node] : *shards) {
    const toml::table* const table =
        all.find_table(name.str(), fmt::format("shards.{}", name.str()));
    const Section section(file, *table, fmt::format("shards.{}", name.str()));
    ShardConfig shard = shard_of(section, name.str(), config.network, keys, parameters);
    for (const ShardConfig& other : config.shards) {
      const bool same_node = other.node == shard.node;
      if (!same_node && (shard.address.empty() || other.address != shard.address)) continue;
      const std::string_view key = same_node ? kNode.name : kAddress.name;
      throw UsageError(fmt::format(
          "{}: '{}' in [{}] is {}, as that of [shards.{}]", section.where(key), key, section.name(),
          same_node ? std::to_string(shard.node) : shard.address, other.name));
    }
    config.shards.push_back(std::move(shard));
  }
  std::sort(config.shards.begin(), config.shards.end(),
            [](const ShardConfig& a, const ShardConfig& b) { return a.node < b.node; });
  check_peers(all, config);
}

}  // namespace

Config Config::read(const std::string& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  // A directory opens like a file, but cannot be read.
  if (!stream || !(text << stream.rdbuf())) {
    const bool is_empty = kind_of(file) == PathKind::file && stream.is_open();
    throw UsageError(fmt::format("{}: {}", file, is_empty ? "is empty" : not_a_file(file)));
  }
  return parse(text.str(), file);
}

Config Config::parse(std::string_view text, const std::string& name) {
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& problem) {
    throw UsageError(
        fmt::format("{}:{}: {}", name, problem.source().begin.line, problem.description()));
  }
  const Section root(name, table, "");
  root.allow_only({"job", kPlatform.name, "verbs", "defaults", "shards", "cluster"});
  Config config;
  constexpr Parameter kJob{.name = "job", .type = Name{}};
  const auto job = root.value(kJob);
  if (!job) root.missing(kJob.name, "a name by which shards and clients find each other");
  config.job = job->text();
  try {
    library::check_job(config.job);
  } catch (const std::invalid_argument& problem) {
    throw UsageError(fmt::format("{}: 'job': {}", root.where("job"), problem.what()));
  }
  config.network = network_of(root, name);
  read_shards(root, name, config);
  config.cluster = timing_of(root, name);
  return config;
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
