#include "harness/report/points.h"

#include <fmt/format.h>

#include <algorithm>

namespace perdura::report {
namespace {

const std::vector<std::string_view>& text_columns() {
  static const std::vector<std::string_view> columns{"experiment", "platform", "provenance",
                                                     "profile",    "system",   "workload",
                                                     "operation",  "verdict",  "reason"};
  return columns;
}

const std::vector<std::string_view>& number_columns() {
  static const std::vector<std::string_view> columns{"schema_version",
                                                     "key_size",
                                                     "value_size",
                                                     "records",
                                                     "clients",
                                                     "queue_depth",
                                                     "server_threads",
                                                     "seed",
                                                     "repetition",
                                                     "operations",
                                                     "errors",
                                                     "not_found",
                                                     "torn_reads",
                                                     "elapsed_s",
                                                     "throughput_ops_s",
                                                     "latency_mean_us",
                                                     "latency_min_us",
                                                     "latency_p50_us",
                                                     "latency_p90_us",
                                                     "latency_p99_us",
                                                     "latency_p999_us",
                                                     "latency_max_us",
                                                     "server_cpu_us_per_op",
                                                     "client_cpu_us_per_op",
                                                     "nvm_field_bytes_per_op",
                                                     "nvm_bytes_issued_per_op",
                                                     "nvm_bytes_programmed_per_op",
                                                     "nvm_bits_flipped_per_op",
                                                     "nvm_flushes_per_op",
                                                     "nvm_fences_per_op",
                                                     "nvm_lines_per_op",
                                                     "nvm_media_bytes_per_op",
                                                     "nvm_local_bytes_per_op",
                                                     "nvm_one_sided_bytes_per_op"};
  return columns;
}

}  // namespace

const std::vector<std::string_view>& Points::key_columns() {
  static const std::vector<std::string_view> columns{
      "platform", "profile", "system",      "workload",       "key_size", "value_size",
      "records",  "clients", "queue_depth", "server_threads", "operation"};
  return columns;
}

Expected<Points> Points::read(const std::filesystem::path& file) {
  auto table = read_csv(file);
  if (!table) return tl::unexpected(table.error());
  for (const auto& columns : {text_columns(), number_columns()}) {
    if (auto complete = require_columns(*table, columns); !complete) {
      return tl::unexpected(complete.error());
    }
  }
  Points points;
  points.table_ = std::move(*table);
  for (std::size_t i = 0; i < points.table_.header.size(); ++i) {
    points.index_.emplace(points.table_.header[i], i);
  }
  for (std::size_t row = 0; row < points.size(); ++row) {
    if (auto sound = points.check(row); !sound) return tl::unexpected(sound.error());
  }
  return points;
}

Expected<void> Points::check(std::size_t row) const {
  const auto wrong = [&](const std::string& what) {
    return fail(fmt::format("{}:{}: {}", file().string(), line(row), what));
  };
  if (text(row, "schema_version") != "1") {
    return wrong(
        fmt::format("schema_version is '{}', this perdura reads 1; use the version that "
                    "wrote the file",
                    text(row, "schema_version")));
  }
  for (const std::string_view column : number_columns()) {
    if (!text(row, column).empty() && !number(row, column)) {
      return wrong(fmt::format("{} is '{}', not a number; remove the line and resume the run",
                               column, text(row, column)));
    }
  }
  for (const std::string_view column : {"repetition", "key_size", "value_size"}) {
    if (text(row, column).empty()) {
      return wrong(fmt::format("{} is empty; remove the line and resume the run", column));
    }
  }
  const std::string& verdict = text(row, "verdict");
  if (verdict != "valid" && verdict != "invalid" && verdict != "failed") {
    return wrong(fmt::format("verdict is '{}'; it must be valid, invalid or failed", verdict));
  }
  const std::string& provenance = text(row, "provenance");
  if (provenance != "modelled" && provenance != "measured") {
    return wrong(fmt::format("provenance is '{}'; it must be modelled or measured", provenance));
  }
  if ((text(row, "platform") == "sim") != (provenance == "modelled")) {
    return wrong(
        fmt::format("platform '{}' with provenance '{}'; only sim is modelled, mend the "
                    "line or run the point again",
                    text(row, "platform"), provenance));
  }
  return {};
}

const std::string& Points::text(std::size_t row, std::string_view column) const {
  return table_.rows[row].cells[index_.find(column)->second];
}

std::optional<double> Points::number(std::size_t row, std::string_view column) const {
  return parse_number(text(row, column));
}

}  // namespace perdura::report
