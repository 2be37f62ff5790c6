#include "bench/probe/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

namespace perdura::bench {
namespace {

// The figure of one probe, for each medium and each placement of the memory.
struct Plan {
  const char* probe;
  const char* title;
  const char* x_label;
  const char* script;
  Bytes (*x)(const Setting&);  // null if the x-axis is the state of the cache
};

constexpr const char* kBars = "latency-over-workload";
constexpr const char* kDoubling = "latency-over-value-size";
constexpr const char* kMessages = "over-message-size";
constexpr const char* kThreads = "throughput-over-clients";

constexpr std::array<Plan, 16> kPlans{{
    {"idle-latency", "Idle latency of 8 bytes", "cache before the access", kBars, nullptr},
    {"loaded-latency", "Latency of loads under load", "threads that stream", kThreads,
     [](const Setting& s) -> Bytes { return s.threads; }},
    {"bandwidth-over-threads", "Bandwidth over threads, 256 bytes, sequential", "threads", kThreads,
     [](const Setting& s) -> Bytes { return s.threads; }},
    {"bandwidth-over-size", "Bandwidth over access size", "access size (bytes)", kDoubling,
     [](const Setting& s) { return s.size; }},
    {"mix", "Bandwidth of loads mixed with ntstores", "loads (%)", kThreads,
     [](const Setting& s) -> Bytes { return s.read_share.value_or(0); }},
    {"write-amplification", "Write amplification over access size", "access size (bytes)",
     kDoubling, [](const Setting& s) { return s.size; }},
    {"rdma-latency", "Latency of RDMA operations", "message size (bytes)", kMessages,
     [](const Setting& s) { return s.size; }},
    {"rdma-bandwidth", "Bandwidth of RDMA operations", "message size (bytes)", kMessages,
     [](const Setting& s) { return s.size; }},
    {"rdma-round-trip", "Round trip of a SEND and a SEND in answer", "message size (bytes)",
     kMessages, [](const Setting& s) { return s.size; }},
    {"rdma-rate-over-depth", "Rate over operations under way, 8 bytes", "operations under way",
     kDoubling, [](const Setting& s) -> Bytes { return s.queue_depth; }},
    {"rdma-rate-over-queue-pairs", "Rate over queue pairs, WRITE of 8 bytes", "queue pairs",
     kDoubling, [](const Setting& s) -> Bytes { return s.queue_pairs; }},
    {"rdma-rate-over-regions", "Rate over registered regions, WRITE of 8 bytes",
     "registered regions", kDoubling, [](const Setting& s) -> Bytes { return s.regions; }},
    {"rdma-rate-over-region-size", "Rate over region size, WRITE of 8 bytes",
     "size of the region (bytes)", kDoubling, [](const Setting& s) { return s.region_size; }},
    {"rdma-rate-over-threads", "Rate over threads, 8 bytes", "threads", kThreads,
     [](const Setting& s) -> Bytes { return s.threads; }},
    {"rdma-rate-over-nodes", "Rate over active nodes, READ of 8 bytes", "active nodes", kThreads,
     [](const Setting& s) -> Bytes { return s.threads; }},
    {"rdma-registration", "Registering and deregistering memory", "size of the region (bytes)",
     kMessages, [](const Setting& s) { return s.region_size; }},
}};

// If one latency is longer than this, all are drawn in microseconds.
constexpr double kLong = 10'000;  // in nanoseconds

std::string y_label(const std::string& unit, bool microseconds) {
  if (unit == "ns") return microseconds ? "Latency (µs)" : "Latency (ns)";
  if (unit == "GB/s") return "Bandwidth (GB/s)";
  if (unit == "Mop/s") return "Rate (Mop/s)";
  return "Bytes written / bytes issued";
}

// The index of `name` in the list; a new name is added.
std::size_t index_of(std::vector<std::string>& known, const std::string& name) {
  const auto found = std::find(known.begin(), known.end(), name);
  if (found != known.end()) return static_cast<std::size_t>(found - known.begin());
  known.push_back(name);
  return known.size() - 1;
}

// Describes the memory, such as "pm one DIMM remote".
std::string memory_of(const Setting& setting) {
  std::string memory = setting.medium;
  if (setting.dimms == "one") memory += " one DIMM";
  if (setting.numa == "remote") memory += " remote";
  return memory;
}

report::Drawing figure_of(const Plan& plan, const std::string& memory,
                          const std::vector<const Reading*>& readings, const std::string& origin) {
  std::string name = memory;
  std::transform(name.begin(), name.end(), name.begin(), [](char letter) {
    return letter == ' ' ? '-' : static_cast<char>(std::tolower(letter));
  });
  const std::string medium = readings.front()->setting.medium;
  const std::string unit = readings.front()->setting.unit;
  const bool microseconds =
      unit == "ns" && std::any_of(readings.begin(), readings.end(),
                                  [](const Reading* r) { return r->median >= kLong; });
  const double scale = microseconds ? 1e-3 : 1;
  std::vector<std::string> all_series;
  std::vector<std::string> xs;
  std::vector<report::DrawnRow> rows;
  for (const Reading* reading : readings) {
    const Setting& setting = reading->setting;
    std::string series = setting.operation;
    // Names are abbreviated, since longer ones do not fit side by side.
    if (!setting.pattern.empty()) series += setting.pattern == "sequential" ? " seq." : " random";
    if (!setting.pages.empty()) series += fmt::format(" {} pages", setting.pages);
    if (std::string_view(plan.probe) == "mix") series = fmt::format("{} threads", setting.threads);
    const std::size_t number = index_of(all_series, series);
    const std::string x = plan.x != nullptr ? std::to_string(plan.x(setting)) : setting.cache;
    const std::size_t place = index_of(xs, x);
    rows.push_back({.series = series,
                    .label = series,
                    .series_index = number,
                    .style = number,
                    .x = plan.x != nullptr ? x : std::to_string(place),
                    .x_label = x,
                    .x_index = place,
                    .y = reading->median * scale,
                    .low = reading->low * scale,
                    .high = reading->high * scale,
                    .repetitions = reading->repetitions});
  }
  // The rows of a series must be adjacent, in the order in which its line is drawn.
  std::stable_sort(rows.begin(), rows.end(), [](const auto& left, const auto& right) {
    return left.series_index < right.series_index;
  });
  return {.name = fmt::format("{}-{}", plan.probe, name),
          .script = plan.script,
          .csv = report::csv_of(rows),
          .title = fmt::format("{}, {}{}", plan.title, medium == "pm" ? "PM" : "DRAM",
                               memory.substr(medium.size())),
          .x_label = plan.x_label,
          .y_label = y_label(unit, microseconds),
          .origin = origin};
}

}  // namespace

std::vector<report::Drawing> figures_of(const std::vector<Reading>& readings,
                                        const std::string& origin) {
  std::vector<report::Drawing> figures;
  for (const Plan& plan : kPlans) {
    std::map<std::string, std::vector<const Reading*>> drawn;
    for (const Reading& reading : readings) {
      if (reading.setting.probe == plan.probe)
        drawn[memory_of(reading.setting)].push_back(&reading);
    }
    for (const auto& [memory, of_memory] : drawn) {
      figures.push_back(figure_of(plan, memory, of_memory, origin));
    }
  }
  return figures;
}

std::string draw(const std::vector<report::Drawing>& figures, const std::filesystem::path& folder,
                 const std::filesystem::path& plots) {
  const report::DrawingPlace place{folder, plots, folder / "plots"};
  if (const auto copied = report::copy_scripts(place); !copied) return copied.error().message;
  for (const report::Drawing& figure : figures) {
    const auto drawn = report::draw(figure, place);
    if (!drawn) return drawn.error().message;
    if (drawn->problem) return drawn->problem->message;
  }
  return "";
}

}  // namespace perdura::bench
