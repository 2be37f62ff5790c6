#include "platform/sim/kernel/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "platform/base/error.h"
#include "platform/base/toml_section.h"

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

// The tables that a role's table may have besides the keys of [server] and [client].
constexpr std::array<std::string_view, 9> kTablesOfRole{
    "cpu", "dram", "pm", "numa", "nic", "link", "ethernet", "disk", "translation"};

bool is_table_of_role(std::string_view name) {
  return std::find(kTablesOfRole.begin(), kTablesOfRole.end(), name) != kTablesOfRole.end();
}

TomlSection existing_section(const TomlSection& parent, std::string_view key) {
  auto section = parent.section(key);
  if (!section) parent.missing(key, fmt::format("add the section, [{}]", key));
  return *section;
}

// The quantities of one section, in the units that the names of its keys say. Every key that is
// not optional must be present, and unknown keys are errors. Where a role has such a section, too,
// its keys come before those of the other.
//
// A mistyped key is both: an unknown one, and a missing one. To report the unknown one, which stands
// in the file, all keys must be known; so a missing key is read as its least value, and done()
// reports it if all keys are known.
class Quantities {
 public:
  Quantities(const TomlSection& top, std::string_view name)
      : layers_{{existing_section(top, name)}} {}
  // The section of a role; if no role has a section of that name, the keys directly in the role's.
  Quantities(const TomlSection& top, const TomlSection& role, std::string_view name) {
    if (!is_table_of_role(name)) {
      layers_.push_back({role, kTablesOfRole});
    } else if (auto own = role.section(name)) {
      layers_.push_back({std::move(*own)});
      if (!top.has(name)) return;
    }
    layers_.push_back({existing_section(top, name)});
  }

  Picoseconds nanoseconds(const std::string& key, double least = 0) {
    return picoseconds(key, {least, kMostNanoseconds});
  }
  double gigabytes_per_second(const std::string& key) { return number(key, kBandwidth) * 1e9; }
  double gigabits_per_second(const std::string& key) { return number(key, kBandwidth) * 1e9 / 8; }
  std::uint32_t count(const std::string& key, std::uint32_t least, std::uint32_t most) {
    const LocatedNode found = find(key);
    if (found.node == nullptr) return least;
    return static_cast<std::uint32_t>(found.section->number_of(*found.node, key, least, most));
  }
  // True if an optional key is present.
  bool has(const std::string& key) {
    read_.insert(key);
    return std::any_of(layers_.begin(), layers_.end(),
                       [&](const Layer& layer) { return layer.section.has(key); });
  }
  bool flag(const std::string& key) {
    const LocatedNode found = find(key);
    return found.node != nullptr && found.section->flag_of(*found.node, key);
  }
  WorkCost cost(const std::string& key) {
    return {nanoseconds(key + "_ns"), picoseconds(key + "_ns_per_byte", kNanosecondsPerByte)};
  }

  // Refuses the value of a key that does not fit those of others. Nothing is said of values that
  // stand for missing keys.
  void refuse(const std::string& key, const std::string& must_be) {
    if (!missing_.empty()) return;
    const LocatedNode found = find(key);
    found.section->wrong(*found.node, key, fmt::format("must be {}", must_be));
  }

  // Must be called when all keys have been read; reports unknown and missing keys.
  void done() const {
    for (const Layer& layer : layers_) {
      std::vector<std::string_view> known(read_.begin(), read_.end());
      known.insert(known.end(), layer.tables.begin(), layer.tables.end());
      layer.section.allow_only(known);
    }
    if (!missing_.empty()) {
      layers_.back().section.missing(missing_, fmt::format("add {} = ...", missing_));
    }
  }

 private:
  struct Layer {
    TomlSection section;
    std::span<const std::string_view> tables{};  // nested tables, which are read elsewhere
  };
  struct LocatedNode {
    const TomlSection* section = nullptr;  // the one that has the key
    const toml::node* node = nullptr;      // null if none has
  };

  LocatedNode find(const std::string& key) {
    read_.insert(key);
    for (const Layer& layer : layers_) {
      if (const toml::node* const node = layer.section.table().get(key)) {
        return {&layer.section, node};
      }
    }
    if (missing_.empty()) missing_ = key;
    return {};
  }
  double number(const std::string& key, const Range& range) {
    const LocatedNode found = find(key);
    if (found.node == nullptr) return range.least;
    return found.section->real_of(*found.node, key, range.least, range.most);
  }
  Picoseconds picoseconds(const std::string& key, const Range& range) {
    return Picoseconds(static_cast<std::int64_t>(number(key, range) * 1e3 + 0.5));
  }

  std::vector<Layer> layers_;  // the first that has a key wins
  std::set<std::string> read_;
  std::string missing_;  // the first missing key; empty if there is none
};

CpuProfile read_cpu(Quantities section) {
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

NodeProfile read_node(Quantities section) {
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

DimmProfile read_dimms(Quantities& section) {
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

MemoryProfile read_memory(Quantities section) {
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

NumaProfile read_numa(Quantities section) {
  NumaProfile numa;
  numa.round_trip = section.nanoseconds("round_trip_ns");
  numa.bandwidth = section.gigabytes_per_second("bandwidth_gb_s");
  section.done();
  return numa;
}

NicProfile read_nic(Quantities section) {
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

TranslationProfile read_translation(Quantities section) {
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

LinkProfile read_link(Quantities section) {
  LinkProfile link;
  link.bandwidth = section.gigabits_per_second("bandwidth_gbit_s");
  link.propagation = section.nanoseconds("propagation_ns");
  link.mtu = section.count("mtu_bytes", 1, 1U << 16);
  link.header = section.count("header_bytes", 0, 1U << 16);
  section.done();
  return link;
}

EthernetProfile read_ethernet(Quantities section) {
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

DiskProfile read_disk(Quantities section) {
  DiskProfile disk;
  disk.bandwidth = section.gigabytes_per_second("bandwidth_gb_s");
  disk.sync = section.nanoseconds("sync_ns");
  disk.system_call = section.nanoseconds("system_call_ns");
  section.done();
  return disk;
}

RetryProfile read_retry(Quantities section) {
  RetryProfile retry;
  // Must not be 0: a receiver without buffers that is retried at once without end would stop
  // virtual time.
  retry.rnr_timer = section.nanoseconds("rnr_timer_ns", 1);
  retry.rnr_retries = section.count("rnr_retries", 0, 7);
  retry.timeout = section.nanoseconds("timeout_ns");
  section.done();
  return retry;
}

// The sections that describe nodes; `section` makes the Quantities of a name, or of [server] and
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

std::vector<RoleProfile> read_roles(const TomlSection& top, const TomlSection& all,
                                    const Profile& base) {
  std::vector<RoleProfile> roles;
  for (const auto& [key, node] : all.table()) {
    const TomlSection role = *all.section(key.str());
    RoleProfile& read = roles.emplace_back(RoleProfile{std::string(key.str()), role.where(), base});
    read_machine(
        read.profile, [&](std::string_view name) { return Quantities(top, role, name); },
        [&](std::string_view name) { return top.has(name) || role.has(name); });
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
  const TomlFile file = TomlFile::read(path);
  const TomlSection top = file.top();
  constexpr std::array<std::string_view, 16> known{
      "name", "title", "ddio",        "cpu",  "server",   "client", "dram",  "pm",
      "numa", "nic",   "translation", "link", "ethernet", "disk",   "retry", "role"};
  top.allow_only(known);

  Profile profile;
  profile.text = file.text();
  profile.name = top.text("name").value_or("");
  profile.title = top.text("title").value_or("");
  if (profile.name.empty()) top.missing("name", "add name = \"...\"");
  const auto ddio = top.flag("ddio");
  if (!ddio) top.missing("ddio", "add ddio = true or ddio = false");
  profile.ddio = *ddio;
  read_machine(
      profile, [&](std::string_view name) { return Quantities(top, name); },
      [&](std::string_view name) { return top.has(name); });
  profile.retry = read_retry({top, "retry"});
  if (const auto roles = top.section("role")) profile.roles = read_roles(top, *roles, profile);
  return profile;
}

}  // namespace perdura::sim
