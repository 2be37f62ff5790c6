#include "bench/fs/fs_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bench/driver/mounted_directory.h"
#include "bench/driver/server.h"
#include "bench/driver/systems.h"
#include "bench/fs/file_workload.h"
#include "bench/fs/fs_parameters.h"
#include "bench/fs/fs_run.h"
#include "bench/fs/octopus_target.h"
#include "bench/fs/target.h"
#include "platform/base/error.h"
#include "platform/base/suggestion.h"
#include "systems/octopus/octopus.h"

namespace perdura::bench {

using harness::Point;

namespace {

constexpr std::string_view kNone = "none";

constexpr services::Metric kMetrics[] = {
    {"read_bytes_per_op", "bytes read", "Bytes read per operation", "bytes"},
    {"written_bytes_per_op", "bytes written", "Bytes written per operation", "bytes"},
    {"transferred_mb_s", "bytes read and written", "Read and written", "MB/s"},
};
// Only for systems of the table.
constexpr services::Metric kAmplification[] = {
    {"write_amplification", "write amplification", "NVM bytes written per byte written"},
};

bool is_at_stores(const harness::PointSettings& settings) {
  return settings.text("application_at") == "stores";
}

bool takes(const FileWorkloadEntry& workload, std::string_view parameter) {
  return std::any_of(workload.takes.begin(), workload.takes.end(),
                     [&](const auto& each) { return each.parameter == parameter; });
}

// Some systems have all data at the metadata server.
bool has_stores(const fs::FsSystem& system) {
  return std::any_of(system.cluster->small.begin(), system.cluster->small.end(),
                     [](const auto& server) { return server.role == fs::FsRole::store; });
}

// Rejects what has an effect only on file systems that have servers.
void check_no_servers(const Point& point) {
  const harness::PointSettings& settings = point.settings;
  for (const std::string_view parameter : parameters_of_clusters()) {
    if (!settings.given(parameter)) continue;
    throw UsageError(fmt::format("{}: {} has no effect on {}, which has no servers; remove it",
                                 settings.where(parameter), parameter, settings.system.text));
  }
}

void check_servers(const Point& point, const fs::FsSystem& system) {
  const harness::PointSettings& settings = point.settings;
  for (const char* const parameter : {"application_at", "mirrors", "groups", "replicas"}) {
    if (has_stores(system) || !settings.given(parameter)) continue;
    throw UsageError(fmt::format("{}: {} has no effect on {}, which has one server; remove it",
                                 settings.where(parameter), parameter, settings.system.text));
  }
  if (settings.text("replication") != kNone) {
    throw UsageError(fmt::format(
        "{}: {} {}; remove replication", settings.where("replication"), settings.system.text,
        has_stores(system) ? "keeps its copies itself" : "cannot be in replicated memory"));
  }
  if (is_at_stores(settings) && settings.given("application_nodes")) {
    throw UsageError(
        fmt::format("{}: the application is on the nodes of the stores; remove application_nodes",
                    settings.where("application_nodes")));
  }
}

void check_path(const Point& point) {
  const harness::PointSettings& settings = point.settings;
  check_no_servers(point);
  for (const char* const parameter :
       {"domain", "ddio", "receive_buffers", "transport", "persistence"}) {
    if (!settings.given(parameter)) continue;
    throw UsageError(fmt::format("{}: {} has no effect on what is mounted at a path; remove it",
                                 settings.where(parameter), parameter));
  }
  if (settings.text("replication") != kNone) {
    throw UsageError(
        fmt::format("{}: replication has no effect on what is mounted at a path; "
                    "remove it",
                    settings.where("replication")));
  }
  if (settings.number("queue_depth") > 1) {
    throw UsageError(
        fmt::format("{}: system calls block a thread, which has one operation under way at a time; "
                    "remove queue_depth and raise threads",
                    settings.where("queue_depth")));
  }
}

}  // namespace

FsDriver::FsDriver(std::span<const fs::FsSystem> systems,
                   std::span<const services::MemorySystem> memories)
    : systems_(systems.begin(), systems.end()), memories_(memories) {
  systems_.push_back(systems::kOctopus);
}

const fs::FsSystem* FsDriver::find(std::string_view name) const {
  const auto found = std::find_if(systems_.begin(), systems_.end(),
                                  [&](const auto& each) { return each.info.name == name; });
  return found == systems_.end() ? nullptr : &*found;
}

std::span<const Parameter> FsDriver::parameters() const { return fs_parameters(); }

std::vector<harness::DriverDeclarations::System> FsDriver::systems() const {
  auto declared = declarations_of(all());
  declared.push_back({kPathSystem, path_parameters(), "System calls"});
  return declared;
}

void FsDriver::prepare(Point& point, const harness::Locations&) const {
  harness::PointSettings& settings = point.settings;
  if (!settings.given("workload")) {
    throw UsageError(fmt::format("{}: no workload; add workload = ... to [workload] or [matrix]",
                                 settings.system.where));
  }
  const FileWorkloadEntry& workload = file_workload(settings.text("workload"));
  for (const std::string_view parameter : parameters_of_workloads()) {
    if (!settings.given(parameter) || takes(workload, parameter)) continue;
    throw UsageError(fmt::format("{}: {} has no effect on the workload {}; remove it",
                                 settings.where(parameter), parameter, workload.name));
  }
  for (const auto& [parameter, value] : workload.takes) {
    if (!settings.given(parameter)) settings.set(parameter, value);
  }
  if (!settings.given("threads")) settings.set("threads", workload.threads);
  if (!settings.given("warmup")) {
    settings.set("warmup",
                 workload.warmup_per_file * settings.number_if_given("files").value_or(0));
  }
  if (!settings.given("operations")) {
    if (workload.name != "mdtest") {
      throw UsageError(
          fmt::format("{}: no number of operations; add operations = ... to [workload]",
                      settings.system.where));
    }
    settings.set(
        "operations",
        lanes_of(point) * operations_of_tree(settings.number("depth"), settings.number("branching"),
                                             settings.number("directory_width")));
  }
  find_file_system(point);
  point.operations = settings.number("operations") + settings.number("warmup");
}

const services::MemorySystem* FsDriver::replication_of(
    const harness::PointSettings& settings) const {
  const std::string name = settings.text("replication");
  if (name == kNone) return nullptr;
  std::vector<std::string_view> names{kNone};
  for (const services::MemorySystem& each : memories_) {
    if (each.info.name == name) return &each;
    names.push_back(each.info.name);
  }
  throw UsageError(fmt::format("{}: {}", settings.where("replication"),
                               unknown_name("replication", name, names)));
}

void FsDriver::check(const Point& point) const {
  const harness::PointSettings& settings = point.settings;
  if (point.timeline_interval > Nanoseconds{}) {
    throw UsageError(fmt::format("{}: file systems are not recorded over time; remove [timeline]",
                                 settings.system.where));
  }
  const std::string workload = settings.text("workload");
  const bool has_places =
      !settings.given("files") && workload != "mdtest" && settings.given("file_size");
  if (has_places && settings.number("file_size") < settings.number("io_size")) {
    throw UsageError(fmt::format(
        "{}: a file of {} bytes has no place for {} bytes; raise "
        "file_size or lower io_size",
        settings.system.where, settings.number("file_size"), settings.number("io_size")));
  }
  if (is_path(point)) return check_path(point);
  if (replication_of(settings) != nullptr && settings.number("queue_depth") > 1) {
    throw UsageError(
        fmt::format("{}: a thread of a replicated file system has one operation under way at a "
                    "time; remove queue_depth and raise threads",
                    settings.where("queue_depth")));
  }
  const fs::FsSystem& system = system_of(point, all());
  if (system.cluster == nullptr) {
    check_no_servers(point);
  } else {
    check_servers(point, system);
  }
  check_server(point, fs::info_of(system));
  try {
    const fs::FsConfig config = fs_config(point, system);
    system.check(config);
    check_octopus(point, config);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", settings.system.where, error.what()));
  }
}

void FsDriver::check_platform_of(const Point& point, std::string_view platform,
                                 const std::string& where) const {
  if (!is_path(point) || platform != "sim") return;
  throw UsageError(fmt::format(
      "{}: the system path makes system calls, which take real time; set platform to \"shm\"",
      where));
}

namespace {

// The threads of the application, before the defaults of its workload have been filled in.
std::uint64_t threads_of(const harness::PointSettings& settings) {
  if (settings.given("threads")) return settings.number("threads");
  return settings.given("workload") ? file_workload(settings.text("workload")).threads : 1;
}

harness::Roles cluster_roles(const harness::PointSettings& settings, const fs::FsSystem& system) {
  const auto number = [&](std::string_view parameter) {
    return static_cast<NodeId>(settings.number(parameter));
  };
  std::vector<harness::Role> roles;
  if (!is_at_stores(settings) || !has_stores(system)) {
    const std::uint64_t nodes =
        std::min<std::uint64_t>(number("application_nodes"), threads_of(settings));
    roles.push_back({"application", static_cast<NodeId>(nodes)});
  }
  roles.push_back({"metadata", 1});
  if (!has_stores(system)) return roles;
  if (number("mirrors") > 0) roles.push_back({"mirror", number("mirrors")});
  roles.push_back({"store", number("groups") * number("replicas")});
  return roles;
}

}  // namespace

harness::Roles FsDriver::roles(const harness::PointSettings& settings, NodeId) const {
  std::vector<harness::Role> roles{{"application", 1}, {"mirror", 1}, {"backup", 1}};
  if (settings.system.text.empty()) {  // those of all points together
    roles.insert(roles.end(), {{"metadata", 1}, {"store", 1}});
    return roles;
  }
  const fs::FsSystem* const system = find(settings.system.text);
  if (system != nullptr && system->cluster != nullptr) return cluster_roles(settings, *system);
  const services::MemorySystem* const memory = replication_of(settings);
  const NodeId copies = memory == nullptr ? 0 : memory->copies.least;
  roles.resize(std::min<std::size_t>(1 + copies, roles.size()));
  if (copies > 1) roles.back().nodes = copies - 1;
  return roles;
}

std::vector<schema::Column> FsDriver::columns(std::string_view name) const {
  std::vector<schema::Column> columns;
  add_columns(kMetrics, columns);
  const fs::FsSystem* const system = find(name);
  if (system == nullptr) return columns;
  add_columns(kAmplification, columns);
  add_columns(system->session_metrics, columns);
  if (system->cluster != nullptr) add_columns(system->cluster->server_metrics, columns);
  return columns;
}

std::span<const std::string_view> FsDriver::columns_if_unusual() const {
  static constexpr std::array<std::string_view, 14> kColumns{
      "shared_file",    "think_us",   "replication",     "application_nodes",
      "application_at", "mirrors",    "groups",          "replicas",
      "domain",         "ddio",       "receive_buffers", "transport",
      "persistence",    "file_system"};
  return kColumns;
}

harness::Measurement FsDriver::run(Platform& platform, const Point& point) const {
  const fs::FsSystem* const system = is_path(point) ? nullptr : &system_of(point, all());
  return FsRun(platform, point, system, replication_of(point.settings)).execute();
}

std::optional<Bytes> FsDriver::memory(const Point& point) const {
  if (is_path(point)) return std::nullopt;
  const harness::Roles& roles = point.roles;
  const NodeId stores = roles.nodes_of("metadata") > 0
                            ? std::max(roles.nodes_of("store"), NodeId{1})
                            : roles.node_count();
  return point.settings.number("size") * stores;
}

std::filesystem::path FsDriver::directory_of_data(const Point& point) const {
  return is_path(point) ? path_of(point) : "";
}

void FsDriver::conclude(const Point& point, harness::Measurement& measurement) const {
  auto& declared = measurement.declared;
  const double read = declared["read_bytes_per_op"];
  const double written = declared["written_bytes_per_op"];
  const auto operations = static_cast<double>(measurement.operations());
  if (const auto rate = measurement.throughput(); rate && operations > 0) {
    declared["transferred_mb_s"] = *rate * (read + written) / operations / 1e6;
  }
  if (is_path(point)) return;
  if (written > 0) {
    declared["write_amplification"] =
        static_cast<double>(measurement.writes().total().field_bits) / 8 / written;
  }
  if (replication_of(point.settings) != nullptr) return;
  if (const auto level = guarantee_of(point, fs::info_of(system_of(point, all())))) {
    measurement.guarantee = to_string(*level);
  }
}

}  // namespace perdura::bench
