#include "harness/schema/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace perdura::schema {
namespace {

constexpr std::array<Spelling, 3> kDomains{{{"dmp", "DMP"}, {"mhp", "MHP"}, {"wsp", "WSP"}}};
constexpr std::array<Spelling, 2> kMedia{{{"dram", "DRAM"}, {"pm", "PM"}}};
constexpr std::array<Spelling, 3> kTransports{
    {{"ib", "InfiniBand"}, {"roce", "RoCE"}, {"iwarp", "iWARP"}}};
constexpr std::array<Spelling, 2> kPersistence{
    {{"correct", "Durable when acknowledged"}, {"paper", "As published"}}};

constexpr std::array<Spelling, 6> kGuarantees{{{"none", "None"},
                                               {"visible", "Visible"},
                                               {"atomic", "Atomic"},
                                               {"ordered", "Ordered"},
                                               {"durable-writes", "Durable Writes"},
                                               {"durable", "Durable"}}};

using Role = Column::Role;
using Better = Column::Better;
using Text = std::string_view;
constexpr auto kText = Column::Kind::text;
constexpr auto kNumber = Column::Kind::number;

constexpr Column name(Text column, Text noun, Text axis) {
  return {column, kText, {noun, axis, ""}, Role::name};
}
constexpr Column draw(Text column, Text noun, Text axis) {
  return {column, kNumber, {noun, axis, ""}, Role::draw};
}
constexpr Column parameter(Text column, Text noun, Text axis, Text unit) {
  return {column, kNumber, {noun, axis, unit}, Role::parameter};
}
constexpr Column text_parameter(Text column, Text noun, Text axis,
                                std::span<const Spelling> words = {}, Text usual = "") {
  return {.name = column,
          .kind = kText,
          .shown = {noun, axis, ""},
          .role = Role::parameter,
          .usual = usual,
          .words = words};
}
constexpr Column words(Text column, Text noun, Text axis, std::span<const Spelling> values = {}) {
  return {.name = column, .kind = kText, .shown = {noun, axis, ""}, .words = values};
}
constexpr Column measured(Text column, Text noun, Text axis, Text unit) {
  return {column, kNumber, {noun, axis, unit}};
}
constexpr Column less_is_better(Text column, Text noun, Text axis, Text unit) {
  return {column, kNumber, {noun, axis, unit}, Role::measured, Better::less};
}
constexpr Column more_is_better(Text column, Text noun, Text axis, Text unit, double scale) {
  return {column, kNumber, {noun, axis, unit, scale}, Role::measured, Better::more};
}

constexpr Column kColumnsBeforeTimes[] = {
    measured("schema_version", "schema version", "Schema version", ""),
    name("experiment", "experiment", "Experiment"),
    name("platform", "platform", "Platform"),
    words("provenance", "provenance", "Provenance"),
    name("profile", "profile", "Profile"),
    name("system", "system", "System"),
    name("workload", "workload", ""),
    parameter("key_size", "key size", "Key size", "bytes"),
    parameter("value_size", "value size", "Value size", "bytes"),
    parameter("records", "records", "Records", ""),
    parameter("clients", "client threads", "Client threads", ""),
    parameter("queue_depth", "queue depth", "Operations in flight per client thread", ""),
    parameter("server_threads", "server threads", "Server threads", ""),
    parameter("resizes", "resizes allowed", "Resizes", ""),
    text_parameter("load", "load", "Load", {}, "closed"),
    parameter("offered_load", "offered load", "Offered load", "op/s"),
    text_parameter("domain", "persistence domain", "Persistence domain", kDomains),
    text_parameter("ddio", "DDIO", "DDIO"),
    text_parameter("receive_buffers", "receive buffers", "Receive buffers", kMedia),
    text_parameter("transport", "transport", "Transport", kTransports),
    text_parameter("update", "update", "Update"),
    text_parameter("persistence", "persistence", "Persistence", kPersistence),
    draw("seed", "seed", "Seed"),
    draw("repetition", "repetition", "Repetition"),
    name("operation", "operation", "Operation"),
    words("verdict", "verdict", "Verdict"),
    words("reason", "reason", "Reason"),
    words("method", "method", "Method"),
    words("guarantee", "guarantee", "Guarantee", kGuarantees),
    measured("operations", "operations", "Operations", ""),
    measured("errors", "errors", "Errors", ""),
    measured("not_found", "keys not found", "Keys not found", ""),
    measured("torn_reads", "torn reads", "Torn reads", ""),
    measured("elapsed_s", "time", "Time", "s"),
    more_is_better("throughput_ops_s", "average throughput", "Throughput", "kop/s", 1e-3),
    measured("tail_percent", "tail", "Operations of the tail", "%"),
    words("long_tail", "long tail", "Long tail"),
    words("saturated", "saturated", "Saturated"),
};

// A statistic of the times of operations. It has a column for latencies and one for response times.
struct Statistic {
  Text name;
  Text noun;  // stands before "latency" or "response time"
  Text latency_axis;
  Text response_axis;
  Text bounded{};  // its noun in "lower bound of the ... of latency"; empty: it has no such columns
};

constexpr Statistic kStatistics[] = {
    {"mean", "average", "Mean latency", "Mean response time", "mean"},
    {"min", "smallest", "Smallest latency", "Smallest response time"},
    {"p50", "median", "Median latency", "Median response time", "median"},
    {"p90", "90th percentile of", "90th percentile of latency", "Response time, p90",
     "90th percentile"},
    {"p99", "99th percentile of", "99th percentile of latency", "Response time, p99",
     "99th percentile"},
    {"p999", "99.9th percentile of", "99.9th percentile of latency", "Response time, p99.9",
     "99.9th percentile"},
    {"p9999", "99.99th percentile of", "99.99th percentile of latency", "Response time, p99.99",
     "99.99th percentile"},
    {"max", "largest", "Largest latency", "Largest response time"},
};

void add_times(std::vector<Column>& columns, Text prefix, Text times, Text Statistic::*axis) {
  static std::deque<std::string> texts;
  const auto keep = [](std::string text) -> Text { return texts.emplace_back(std::move(text)); };
  for (const Statistic& statistic : kStatistics) {
    columns.push_back(less_is_better(keep(fmt::format("{}_{}_us", prefix, statistic.name)),
                                     keep(fmt::format("{} {}", statistic.noun, times)),
                                     statistic.*axis, "us"));
  }
  for (const Statistic& statistic : kStatistics) {
    if (statistic.bounded.empty()) continue;
    for (const bool low : {true, false}) {
      const Text noun = keep(fmt::format("{} bound of the {} of {}", low ? "lower" : "upper",
                                         statistic.bounded, times));
      const Text end = low ? "low" : "high";
      columns.push_back(measured(keep(fmt::format("{}_{}_{}_us", prefix, statistic.name, end)),
                                 noun, keep(capitalized(noun)), "us"));
      columns.back().may_be_negative = low && statistic.name == "mean";
    }
  }
}

constexpr Column kColumnsAfterTimes[] = {
    less_is_better("harness_ns_per_op", "cost of the harness", "Cost of the harness per operation",
                   "ns"),
    less_is_better("server_cpu_us_per_op", "server CPU cost", "Server CPU time per operation",
                   "us"),
    less_is_better("client_cpu_us_per_op", "client CPU cost", "Client CPU time per operation",
                   "us"),
    less_is_better("nvm_field_bytes_per_op", "NVM bytes written", "NVM bytes per operation",
                   "bytes"),
    less_is_better("nvm_bytes_issued_per_op", "NVM bytes issued", "NVM bytes issued per operation",
                   "bytes"),
    less_is_better("nvm_bytes_programmed_per_op", "NVM bytes programmed",
                   "NVM bytes programmed per operation", "bytes"),
    less_is_better("nvm_bits_flipped_per_op", "NVM bits flipped", "NVM bits flipped per operation",
                   ""),
    less_is_better("nvm_flushes_per_op", "flushes", "Flushes per operation", ""),
    less_is_better("nvm_fences_per_op", "fences", "Fences per operation", ""),
    less_is_better("nvm_lines_per_op", "64-byte lines written", "64-byte lines per operation", ""),
    less_is_better("nvm_media_bytes_per_op", "media bytes written", "Media bytes per operation",
                   "bytes"),
    less_is_better("nvm_local_bytes_per_op", "NVM bytes stored by CPUs",
                   "NVM bytes stored by CPUs per operation", "bytes"),
    less_is_better("nvm_one_sided_bytes_per_op", "NVM bytes written one-sidedly",
                   "NVM bytes written one-sidedly per operation", "bytes"),
    less_is_better("one_sided_reads_per_op", "one-sided READs", "READs per operation", ""),
    measured("space_used_percent", "load factor", "Load factor", "%"),
};

constexpr Column kNoiseColumns[] = {
    words("noise", "noise", "Noise"),
    measured("load_average", "load average", "Load average", ""),
    measured("runnable_before_per_core", "runnable threads before",
             "Runnable threads per core before", ""),
    measured("runnable_per_core", "runnable threads", "Runnable threads per core", ""),
    measured("waiting_threads", "waiting threads", "Waiting threads", ""),
    measured("steal_percent", "steal", "Steal time", "%"),
    measured("slowdown_percent", "slowdown", "Slowdown of a calibration loop", "%"),
};

constexpr Column kTimelineColumns[] = {
    measured("time_ms", "time", "Time", "ms"),
    measured("operations", "operations", "Operations", ""),
    less_is_better("latency_mean_us", "average latency", "Mean latency", "us"),
    less_is_better("latency_max_us", "largest latency", "Largest latency", "us"),
    measured("free_percent", "free space", "Free space", "%"),
    measured("cleanings", "cleanings", "Cleanings", ""),
    measured("cleanings_now", "cleanings under way", "Cleanings under way", ""),
};

constexpr Column kProbeSettings[] = {
    text_parameter("probe", "probe", "Probe"),
    text_parameter("medium", "medium", "Medium"),
    text_parameter("pattern", "pattern", "Pattern"),
    text_parameter("cache", "cache", "Cache"),
    text_parameter("pages", "pages", "Pages"),
    text_parameter("numa", "numa", "NUMA"),
    text_parameter("dimms", "dimms", "Dimms"),
    text_parameter("size", "size", "Size"),
    text_parameter("queue_pairs", "queue pairs", "Queue pairs"),
    text_parameter("regions", "regions", "Regions"),
    text_parameter("region_size", "region size", "Region size"),
    text_parameter("read_percent", "read percent", "Read percent"),
    text_parameter("unit", "unit", "Unit"),
    text_parameter("threads", "threads", "Threads"),
};

constexpr Column kProbeReadings[] = {
    measured("value", "value", "Value", ""),
    measured("low", "low", "Low", ""),
    measured("high", "high", "High", ""),
    measured("repetitions", "repetitions", "Repetitions", ""),
};

}  // namespace

std::span<const Column> point_columns() {
  static const std::vector<Column> all = [] {
    std::vector<Column> columns(std::begin(kColumnsBeforeTimes), std::end(kColumnsBeforeTimes));
    add_times(columns, "latency", "latency", &Statistic::latency_axis);
    add_times(columns, "response", "response time", &Statistic::response_axis);
    columns.insert(columns.end(), std::begin(kColumnsAfterTimes), std::end(kColumnsAfterTimes));
    return columns;
  }();
  return all;
}

std::span<const Column> identity_columns() {
  const auto columns = point_columns();
  const auto last = std::find_if(columns.begin(), columns.end(),
                                 [](const Column& column) { return column.name == "repetition"; });
  return {columns.begin(), last + 1};
}

std::span<const Spelling> guarantee_words() { return kGuarantees; }

std::span<const Column> noise_columns() { return kNoiseColumns; }
std::span<const Column> timeline_columns() { return kTimelineColumns; }
std::span<const Column> probe_settings() { return kProbeSettings; }
std::span<const Column> probe_readings() { return kProbeReadings; }

const Column* find_column(std::string_view name) {
  for (const std::span<const Column> table :
       {point_columns(), noise_columns(), timeline_columns(), probe_settings(), probe_readings()}) {
    const auto found = std::find_if(table.begin(), table.end(),
                                    [&](const Column& column) { return column.name == name; });
    if (found != table.end()) return &*found;
  }
  return nullptr;
}

}  // namespace perdura::schema
