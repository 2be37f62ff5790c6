#include "harness/schema/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include "systems/kv.h"

namespace perdura::report {
namespace {

const std::array<std::pair<std::string_view, Quantity>, 48> quantities{{
    {"latency_mean_us", {"average latency", "Mean latency", "us"}},
    {"latency_min_us", {"smallest latency", "Smallest latency", "us"}},
    {"latency_p50_us", {"median latency", "Median latency", "us"}},
    {"latency_p90_us", {"90th percentile of latency", "90th percentile of latency", "us"}},
    {"latency_p99_us", {"99th percentile of latency", "99th percentile of latency", "us"}},
    {"latency_p999_us", {"99.9th percentile of latency", "99.9th percentile of latency", "us"}},
    {"latency_p9999_us", {"99.99th percentile of latency", "99.99th percentile of latency", "us"}},
    {"latency_max_us", {"largest latency", "Largest latency", "us"}},
    {"response_mean_us", {"average response time", "Mean response time", "us"}},
    {"response_min_us", {"smallest response time", "Smallest response time", "us"}},
    {"response_p50_us", {"median response time", "Median response time", "us"}},
    {"response_p90_us", {"90th percentile of response time", "Response time, p90", "us"}},
    {"response_p99_us", {"99th percentile of response time", "Response time, p99", "us"}},
    {"response_p999_us", {"99.9th percentile of response time", "Response time, p99.9", "us"}},
    {"response_p9999_us", {"99.99th percentile of response time", "Response time, p99.99", "us"}},
    {"response_max_us", {"largest response time", "Largest response time", "us"}},
    {"harness_ns_per_op", {"cost of the harness", "Cost of the harness per operation", "ns"}},
    {"load", {"load", "Load", ""}},
    {"offered_load", {"offered load", "Offered load", "op/s"}},
    {"throughput_ops_s", {"average throughput", "Throughput", "kop/s", 1e-3}},
    {"server_cpu_us_per_op", {"server CPU cost", "Server CPU time per operation", "us"}},
    {"client_cpu_us_per_op", {"client CPU cost", "Client CPU time per operation", "us"}},
    {"nvm_field_bytes_per_op", {"NVM bytes written", "NVM bytes per operation", "bytes"}},
    {"nvm_bytes_issued_per_op", {"NVM bytes issued", "NVM bytes issued per operation", "bytes"}},
    {"nvm_bytes_programmed_per_op",
     {"NVM bytes programmed", "NVM bytes programmed per operation", "bytes"}},
    {"nvm_bits_flipped_per_op", {"NVM bits flipped", "NVM bits flipped per operation", ""}},
    {"nvm_flushes_per_op", {"flushes", "Flushes per operation", ""}},
    {"nvm_fences_per_op", {"fences", "Fences per operation", ""}},
    {"nvm_lines_per_op", {"64-byte lines written", "64-byte lines per operation", ""}},
    {"nvm_media_bytes_per_op", {"media bytes written", "Media bytes per operation", "bytes"}},
    {"value_size", {"value size", "Value size", "bytes"}},
    {"key_size", {"key size", "Key size", "bytes"}},
    {"records", {"records", "Records", ""}},
    {"clients", {"client threads", "Client threads", ""}},
    {"queue_depth", {"queue depth", "Operations in flight per client thread", ""}},
    {"server_threads", {"server threads", "Server threads", ""}},
    {"resizes", {"resizes allowed", "Resizes", ""}},
    {"one_sided_reads_per_op", {"one-sided READs", "READs per operation", ""}},
    {"space_used_percent", {"load factor", "Load factor", "%"}},
    {"time_ms", {"time", "Time", "ms"}},
    {"workload", {"workload", "", ""}},
    {"domain", {"persistence domain", "Persistence domain", ""}},
    {"ddio", {"DDIO", "DDIO", ""}},
    {"receive_buffers", {"receive buffers", "Receive buffers", ""}},
    {"transport", {"transport", "Transport", ""}},
    {"update", {"update", "Update", ""}},
    {"persistence", {"persistence", "Persistence", ""}},
    {"guarantee", {"guarantee", "Guarantee", ""}},
}};

const std::array<std::pair<std::string_view, std::string_view>, 8> spellings{{
    {"dmp", "DMP"},
    {"mhp", "MHP"},
    {"wsp", "WSP"},
    {"dram", "DRAM"},
    {"pm", "PM"},
    {"ib", "InfiniBand"},
    {"roce", "RoCE"},
    {"iwarp", "iWARP"},
}};

}  // namespace

std::string Quantity::axis_with_unit() const {
  const std::string shown = shown_unit(unit);
  return shown.empty() ? axis : fmt::format("{} ({})", axis, shown);
}

Quantity quantity_of(std::string_view column) {
  for (const auto& [name, quantity] : quantities) {
    if (name == column) return quantity;
  }
  return {std::string(column), std::string(column), "", 1};
}

std::string shown_unit(std::string_view unit) {
  if (unit == "us") return "µs";
  if (unit == "ratio" || unit == "none") return "";
  return std::string(unit);
}

std::string capitalized(std::string text) {
  if (!text.empty()) {
    text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  }
  return text;
}

std::string shown_name(std::string_view value) {
  const auto systems = systems::kv_systems();
  const auto system = std::find_if(systems.begin(), systems.end(),
                                   [&](const auto& each) { return each.name == value; });
  if (system != systems.end()) return std::string(system->title);
  std::string shown;
  while (true) {
    const auto end = value.find_first_of("-_");
    shown += capitalized(std::string(value.substr(0, end)));
    if (end == std::string_view::npos) return shown;
    shown += ' ';
    value.remove_prefix(end + 1);
  }
}

std::string shown_value(std::string_view column, std::string_view value) {
  if (column == "workload") return shown_workload(value);
  if (column == "persistence") {
    return value == "correct" ? "Durable when acknowledged" : "As published";
  }
  if (column == "domain" || column == "receive_buffers" || column == "transport") {
    for (const auto& [word, shown] : spellings) {
      if (word == value) return std::string(shown);
    }
  }
  return shown_name(value);
}

std::string shown_workload(std::string_view workload) {
  constexpr std::string_view ycsb = "workload";
  if (workload.size() == ycsb.size() + 1 && workload.starts_with(ycsb)) {
    return "YCSB-" + capitalized(std::string(workload.substr(ycsb.size())));
  }
  return capitalized(std::string(workload));
}

std::string shown_range(std::string text) {
  const auto hyphen = text.find('-');
  if (hyphen != std::string::npos) text.replace(hyphen, 1, "–");
  return text;
}

std::string shown_number(double number) {
  if (number == 0) return "0";
  if (std::isinf(number)) return "∞";
  if (std::abs(number) >= 1000) return fmt::format("{:.0f}", number);
  if (std::abs(number) >= 100) return fmt::format("{:.1f}", number);
  if (std::abs(number) < 0.1) return fmt::format("{:.2g}", number);
  return fmt::format("{:.2f}", number);
}

}  // namespace perdura::report
