#include "platform/sim/kernel/profile.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "platform/base/error.h"

namespace perdura::sim {
namespace {

// The range of values that are accepted. It includes every real machine, but excludes values with
// which virtual time would overflow or tables would not fit in memory.
struct Range {
  double least;
  double most;
};
constexpr double kMostNanoseconds = 1e9;
constexpr Range kNanosecondsPerByte{0, 1e3};
constexpr Range kBandwidth{1e-3, 1e6};  // GB/s or Gbit/s
constexpr std::uint32_t kMostBytes = 1U << 30;
constexpr std::uint32_t kMostLines = 1U << 12;
constexpr std::uint32_t kMostTranslations = 1U << 20;

[[noreturn]] void fail_at(const std::string& path, const toml::source_region& where,
                          const std::string& what) {
  throw UsageError(fmt::format("{}:{}: {}", path, where.begin.line, what));
}

// The tables that a role's table may have besides the keys of [server] and [client].
const std::set<std::string>& tables_of_role() {
  static const std::set<std::string> tables{"cpu",  "dram",     "pm",   "numa",       "nic",
                                            "link", "ethernet", "disk", "translation"};
  return tables;
}

// One table of the file. Every key that is not optional must be present, and unknown keys are
// errors. Where a role has such a table, too, its keys come before those of the other.
class Section {
 public:
  Section(const std::string& path, const toml::table& root, const std::string& name) : path_(path) {
    add(root, name, name);
  }
  // A section of a role; with an empty `key`, the keys directly in the role's table.
  Section(const std::string& path, const toml::table& root, const std::string& name,
          const std::string& role, const std::string& key)
      : path_(path) {
    const toml::table& of_role = *root["role"][role].as_table();
    const std::string full = fmt::format("role.{}", role);
    if (key.empty()) {
      layers_.push_back({full, &of_role, tables_of_role()});
    } else if (of_role.contains(key)) {
      add(of_role, key, fmt::format("{}.{}", full, key));
      if (!root.contains(name)) return;
    }
    add(root, name, name);
  }

  Picoseconds nanoseconds(const std::string& key, double least = 0) {
    return picoseconds(key, {least, kMostNanoseconds});
  }
  double gigabytes_per_second(const std::string& key) { return number(key, kBandwidth) * 1e9; }
  double gigabits_per_second(const std::string& key) { return number(key, kBandwidth) * 1e9 / 8; }
  std::uint32_t count(const std::string& key, std::uint32_t least, std::uint32_t most) {
    const auto [name, node] = find(key);
    const auto value = node.value<std::int64_t>();
    if (!node.is_integer() || !value || *value < least || *value > most) {
      fail(node.source(),
           fmt::format("'{}' in [{}] must be a whole number from {} to {}, but is {}", key, name,
                       least, most, text_of(node)));
    }
    return static_cast<std::uint32_t>(*value);
  }
  // True if an optional key is present.
  bool has(const std::string& key) {
    read_.insert(key);
    return std::any_of(layers_.begin(), layers_.end(),
                       [&](const Layer& layer) { return layer.table->contains(key); });
  }
  bool flag(const std::string& key) {
    const auto [name, node] = find(key);
    const auto value = node.value_exact<bool>();
    if (!value) fail(node.source(), fmt::format("'{}' in [{}] must be true or false", key, name));
    return *value;
  }
  WorkCost cost(const std::string& key) {
    return {nanoseconds(key + "_ns"), picoseconds(key + "_ns_per_byte", kNanosecondsPerByte)};
  }

  [[noreturn]] void refuse(const std::string& key, const std::string& must_be) {
    const auto [name, node] = find(key);
    fail(node.source(), fmt::format("'{}' in [{}] must be {}", key, name, must_be));
  }

  // Must be called when all keys have been read; reports unknown keys.
  void done() const {
    for (const Layer& layer : layers_) {
      std::set<std::string> known = read_;
      known.insert(layer.tables.begin(), layer.tables.end());
      for (const auto& [key, node] : *layer.table) {
        if (!known.contains(std::string(key.str()))) {
          fail(node.source(), fmt::format("unknown key '{}' in [{}]; known are: {}", key.str(),
                                          layer.name, fmt::join(known, ", ")));
        }
      }
    }
  }

 private:
  struct Layer {
    std::string name;
    const toml::table* table;
    std::set<std::string> tables{};  // nested tables, which are read elsewhere
  };
  struct Found {
    std::string_view name;  // the table that has the key
    const toml::node& node;
  };

  void add(const toml::table& parent, const std::string& key, const std::string& name) {
    const toml::table* const table = parent[key].as_table();
    if (table == nullptr) {
      if (const toml::node* const other = parent.get(key)) {
        fail(other->source(), fmt::format("'{}' must be a table, [{}]", key, name));
      }
      fail(parent.source(), fmt::format("section [{}] is missing", name));
    }
    layers_.push_back({name, table});
  }
  Found find(const std::string& key) {
    read_.insert(key);
    for (const Layer& layer : layers_) {
      if (const toml::node* const node = layer.table->get(key)) return {layer.name, *node};
    }
    const Layer& last = layers_.back();
    fail(last.table->source(), fmt::format("'{}' is missing in [{}]", key, last.name));
  }
  double number(const std::string& key, const Range& range) {
    const auto [name, node] = find(key);
    const auto value = node.value<double>();
    // The comparison is written so that NaN fails it, too.
    if (!node.is_number() || !value || !(*value >= range.least && *value <= range.most)) {
      fail(node.source(), fmt::format("'{}' in [{}] must be a number from {:g} to {:g}, but is {}",
                                      key, name, range.least, range.most, text_of(node)));
    }
    return *value;
  }
  Picoseconds picoseconds(const std::string& key, const Range& range) {
    return Picoseconds(static_cast<std::int64_t>(number(key, range) * 1e3 + 0.5));
  }
  static std::string text_of(const toml::node& node) {
    if (const auto whole = node.value_exact<std::int64_t>()) return fmt::to_string(*whole);
    if (const auto real = node.value_exact<double>()) return fmt::to_string(*real);
    if (const auto text = node.value_exact<std::string>()) return fmt::format("\"{}\"", *text);
    return "something else";
  }
  [[noreturn]] void fail(const toml::source_region& where, const std::string& what) const {
    fail_at(path_, where, what);
  }

  std::string path_;
  std::vector<Layer> layers_;  // the first that has a key wins
  std::set<std::string> read_;
};

CpuProfile read_cpu(Section section) {
  CpuProfile cpu;
  cpu.work[static_cast<int>(Work::crc32)] = section.cost("crc32");
  cpu.work[static_cast<int>(Work::copy)] = section.cost("copy");
  cpu.work[static_cast<int>(Work::hash)] = section.cost("hash");
  cpu.work[static_cast<int>(Work::compare)] = section.cost("compare");
  cpu.work[static_cast<int>(Work::dispatch)] = {section.nanoseconds("dispatch_ns"), {}};
  cpu.load = section.nanoseconds("load_ns");
  cpu.store = section.nanoseconds("store_ns");
  cpu.flush = section.nanoseconds("flush_ns");
  cpu.fence = section.nanoseconds("fence_ns");
  cpu.post = section.nanoseconds("post_ns");
  cpu.poll = section.nanoseconds("poll_ns");
  cpu.context_switch = section.nanoseconds("context_switch_ns");
  cpu.time_slice = section.nanoseconds("time_slice_ns");
  if (section.has("line_transfer_ns")) {
    cpu.line_transfer = section.nanoseconds("line_transfer_ns", 1);
  }
  section.done();
  return cpu;
}

NodeProfile read_node(Section section) {
  NodeProfile node;
  node.cores = section.count("cores", 1, 1U << 16);
  node.wait.wakeup_latency = section.nanoseconds("wakeup_latency_ns");
  node.wait.wakeup_cpu = section.nanoseconds("wakeup_cpu_ns");
  node.wait.arm = section.nanoseconds("arm_ns");
  node.wait.sleep_cpu = section.nanoseconds("sleep_cpu_ns");
  node.wait.wakeups = section.count("wakeups", 0, 1000);
  section.done();
  return node;
}

DimmProfile read_dimms(Section& section) {
  DimmProfile dimms;
  dimms.count = section.count("dimms", 1, 64);
  dimms.interleave = section.count("interleave_bytes", 1, kMostBytes);
  dimms.buffer_lines = section.count("buffer_lines", 1, kMostLines);
  dimms.buffer_ways = section.count("buffer_ways", 1, kMostLines);
  dimms.buffer_read_latency = section.nanoseconds("buffer_read_latency_ns");
  dimms.port_bandwidth = section.gigabytes_per_second("port_bandwidth_gb_s");
  dimms.write_queue = section.count("write_queue_lines", 1, kMostLines);
  dimms.loads_under_way = section.count("loads_under_way", 1, kMostLines);
  if (dimms.interleave % kMediaLine != 0) {
    section.refuse("interleave_bytes", fmt::format("a multiple of {}", kMediaLine));
  }
  if (dimms.buffer_lines % dimms.buffer_ways != 0) {
    section.refuse("buffer_lines", "a multiple of buffer_ways");
  }
  return dimms;
}

MemoryProfile read_memory(Section section) {
  MemoryProfile memory;
  memory.read_latency = section.nanoseconds("read_latency_ns");
  memory.write_latency = section.nanoseconds("write_latency_ns");
  memory.read_bandwidth = section.gigabytes_per_second("read_bandwidth_gb_s");
  memory.write_bandwidth = section.gigabytes_per_second("write_bandwidth_gb_s");
  memory.streaming_latency = section.has("streaming_write_latency_ns")
                                 ? section.nanoseconds("streaming_write_latency_ns")
                                 : memory.write_latency;
  if (section.has("dimms")) memory.dimms = read_dimms(section);
  if (section.has("row_bytes")) {
    memory.rows = {section.count("row_bytes", 1, kMostBytes),
                   section.count("open_rows", 1, kMostLines),
                   section.nanoseconds("row_hit_latency_ns")};
  }
  section.done();
  return memory;
}

NumaProfile read_numa(Section section) {
  NumaProfile numa;
  numa.round_trip = section.nanoseconds("round_trip_ns");
  numa.bandwidth = section.gigabytes_per_second("bandwidth_gb_s");
  section.done();
  return numa;
}

NicProfile read_nic(Section section) {
  NicProfile nic;
  nic.message = section.nanoseconds("message_ns");
  nic.processing = section.nanoseconds("processing_ns");
  nic.max_inline = section.count("max_inline_bytes", 0, 1U << 16);
  nic.pcie_bandwidth = section.gigabytes_per_second("pcie_bandwidth_gb_s");
  if (section.has("pcie_read_bandwidth_gb_s")) {
    nic.pcie_read_bandwidth = section.gigabytes_per_second("pcie_read_bandwidth_gb_s");
  }
  nic.pcie_read = section.nanoseconds("pcie_read_ns");
  nic.pcie_write = section.nanoseconds("pcie_write_ns");
  nic.atomic = section.nanoseconds("atomic_ns");
  nic.flush = section.flag("flush");
  nic.flush_persistence = section.flag("flush_persistence");
  nic.atomic_write = section.flag("atomic_write");
  section.done();
  return nic;
}

TranslationProfile read_translation(Section section) {
  TranslationProfile translation;
  translation.page = section.count("page_bytes", 0, kMostBytes);
  translation.cache_entries = section.count("cache_entries", 1, kMostTranslations);
  translation.cache_ways = section.count("cache_ways", 1, kMostTranslations);
  translation.miss = section.nanoseconds("miss_ns");
  translation.misses_under_way = section.count("misses_under_way", 1, kMostLines);
  translation.registration = section.nanoseconds("registration_ns");
  translation.registration_entry = section.nanoseconds("registration_entry_ns");
  translation.change = section.nanoseconds("change_ns");
  if (translation.page != 0 && translation.page < kCacheLine) {
    section.refuse("page_bytes", fmt::format("0, or at least {}", kCacheLine));
  }
  if (translation.cache_entries % translation.cache_ways != 0) {
    section.refuse("cache_entries", "a multiple of cache_ways");
  }
  section.done();
  return translation;
}

LinkProfile read_link(Section section) {
  LinkProfile link;
  link.bandwidth = section.gigabits_per_second("bandwidth_gbit_s");
  link.propagation = section.nanoseconds("propagation_ns");
  link.mtu = section.count("mtu_bytes", 1, 1U << 16);
  link.header = section.count("header_bytes", 0, 1U << 16);
  section.done();
  return link;
}

EthernetProfile read_ethernet(Section section) {
  EthernetProfile ethernet;
  ethernet.link.bandwidth = section.gigabits_per_second("bandwidth_gbit_s");
  ethernet.link.propagation = section.nanoseconds("propagation_ns");
  ethernet.link.mtu = section.count("segment_bytes", 1, 1U << 16);
  ethernet.link.header = section.count("header_bytes", 0, 1U << 16);
  ethernet.stack = section.nanoseconds("stack_ns");
  ethernet.system_call = section.nanoseconds("system_call_ns");
  section.done();
  return ethernet;
}

DiskProfile read_disk(Section section) {
  DiskProfile disk;
  disk.bandwidth = section.gigabytes_per_second("bandwidth_gb_s");
  disk.sync = section.nanoseconds("sync_ns");
  disk.system_call = section.nanoseconds("system_call_ns");
  section.done();
  return disk;
}

RetryProfile read_retry(Section section) {
  RetryProfile retry;
  // Must not be 0: a receiver without buffers that is retried at once without end would stop
  // virtual time.
  retry.rnr_timer = section.nanoseconds("rnr_timer_ns", 1);
  retry.rnr_retries = section.count("rnr_retries", 0, 7);
  retry.timeout = section.nanoseconds("timeout_ns");
  section.done();
  return retry;
}

// The sections that describe nodes; `section` makes a Section of a name, or of [server] and
// [client].
template <class MakeSection, class HasSection>
void read_machine(Profile& profile, MakeSection section, HasSection has) {
  profile.cpu = read_cpu(section("cpu"));
  profile.server = read_node(section("server"));
  profile.client = read_node(section("client"));
  profile.dram = read_memory(section("dram"));
  profile.pm = read_memory(section("pm"));
  if (profile.cpu.line_transfer == Picoseconds::zero()) {
    profile.cpu.line_transfer = profile.dram.read_latency;
  }
  if (has("numa")) profile.numa = read_numa(section("numa"));
  profile.nic = read_nic(section("nic"));
  if (has("translation")) profile.translation = read_translation(section("translation"));
  profile.link = read_link(section("link"));
  if (has("ethernet")) profile.ethernet = read_ethernet(section("ethernet"));
  if (has("disk")) profile.disk = read_disk(section("disk"));
}

std::vector<RoleProfile> read_roles(const std::string& path, const toml::table& root,
                                    const Profile& base) {
  std::vector<RoleProfile> roles;
  const toml::table* const tables = root["role"].as_table();
  if (tables == nullptr) fail_at(path, root.get("role")->source(), "'role' must be [role.NAME]");
  for (const auto& [key, node] : *tables) {
    const std::string role(key.str());
    if (!node.is_table()) {
      fail_at(path, node.source(), fmt::format("'role.{0}' must be a table, [role.{0}]", role));
    }
    RoleProfile& read = roles.emplace_back(
        RoleProfile{role, fmt::format("{}:{}", path, node.source().begin.line), base});
    const auto is_own = [&](const std::string& name) { return tables_of_role().contains(name); };
    read_machine(
        read.profile,
        [&](const std::string& name) {
          return Section(path, root, name, role, is_own(name) ? name : "");
        },
        [&](const std::string& name) {
          return root.contains(name) || node.as_table()->contains(name);
        });
  }
  return roles;
}

}  // namespace

const Profile& Profile::of_role(std::string_view role) const {
  const auto found = std::find_if(roles.begin(), roles.end(),
                                  [&](const RoleProfile& each) { return each.role == role; });
  return found == roles.end() ? *this : found->profile;
}

void check_roles(const Profile& profile, std::span<const std::string> roles) {
  for (const RoleProfile& described : profile.roles) {
    if (std::find(roles.begin(), roles.end(), described.role) != roles.end()) continue;
    throw UsageError(fmt::format("{}: no node has the role '{}'; the roles are: {}",
                                 described.where, described.role, fmt::join(roles, ", ")));
  }
}

Profile load_profile(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw UsageError(fmt::format("{}: cannot read this profile", path));
  std::stringstream text;
  text << file.rdbuf();

  toml::table root;
  try {
    root = toml::parse(text.str(), path);
  } catch (const toml::parse_error& error) {
    throw UsageError(
        fmt::format("{}:{}: {}", path, error.source().begin.line, error.description()));
  }
  static const std::set<std::string> known{
      "name", "title", "ddio",        "cpu",  "server",   "client", "dram",  "pm",
      "numa", "nic",   "translation", "link", "ethernet", "disk",   "retry", "role"};
  for (const auto& [key, node] : root) {
    if (!known.contains(std::string(key.str()))) {
      throw UsageError(fmt::format("{}:{}: unknown key '{}'; known are: {}", path,
                                   node.source().begin.line, key.str(), fmt::join(known, ", ")));
    }
  }

  Profile profile;
  profile.text = text.str();
  profile.name = root["name"].value_or(std::string());
  profile.title = root["title"].value_or(std::string());
  if (profile.name.empty()) throw UsageError(fmt::format("{}:1: 'name' is missing", path));
  const auto ddio = root["ddio"].value<bool>();
  if (!ddio) throw UsageError(fmt::format("{}:1: 'ddio' must be true or false", path));
  profile.ddio = *ddio;
  read_machine(
      profile, [&](const std::string& name) { return Section(path, root, name); },
      [&](const std::string& name) { return root.contains(name); });
  profile.retry = read_retry({path, root, "retry"});
  if (root.contains("role")) profile.roles = read_roles(path, root, profile);
  return profile;
}

}  // namespace perdura::sim
