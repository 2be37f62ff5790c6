#include "harness/results/points.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "harness/schema/columns.h"
#include "harness/schema/csv_table.h"

namespace perdura::harness {
namespace {

std::string written(std::string_view text) { return schema::csv_cell(text); }
std::string written(std::uint64_t number) { return fmt::to_string(number); }
std::string written(double number) { return fmt::format("{}", number); }
template <class Value>
std::string written(const std::optional<Value>& value) {
  return value ? written(*value) : "";
}

// The cells of a row, by column. Columns are declared in harness/schema, which knows no
// measurements, so the code that adds cells here must not depend on the order there.
class Row {
 public:
  // A value that was not measured, or does not apply to this row, leaves its cell empty.
  template <class Value>
  void add(std::string_view column, const Value& value, bool applies = true) {
    cells_.emplace(column, applies ? written(value) : "");
  }

  // Throws std::logic_error unless each column has exactly one cell.
  void append_to(std::string& out, std::span<const schema::Column> columns) {
    for (const schema::Column& column : columns) {
      const auto cell = cells_.find(column.name);
      if (cell == cells_.end()) {
        throw std::logic_error(fmt::format("column {} has no cell", column.name));
      }
      out += cell->second + ',';
      cells_.erase(cell);
    }
    if (!cells_.empty()) {
      throw std::logic_error(fmt::format("cell {} has no column", cells_.begin()->first));
    }
    out.back() = '\n';
  }

 private:
  std::multimap<std::string, std::string, std::less<>> cells_;
};

std::string header(std::span<const schema::Column> columns) {
  std::string out;
  for (const schema::Column& column : columns) {
    fmt::format_to(std::back_inserter(out), "{},", column.name);
  }
  out.back() = '\n';
  return out;
}

// The rows of a result: one for all operations, then, if there were several kinds, one for each.
struct RowSource {
  std::string_view operation;
  KindMeasurement measured;
};

std::vector<RowSource> rows_of(const Measurement& measurement) {
  RowSource all{"all", {}};
  std::vector<RowSource> kinds;
  for (const auto& [kind, measured] : measurement.kinds) {
    if (measured.operations == 0) continue;
    all.measured.merge(measured);
    kinds.push_back({kind.name, measured});
  }
  std::vector<RowSource> rows;
  rows.push_back(std::move(all));
  if (kinds.size() > 1) {
    for (RowSource& kind : kinds) rows.push_back(std::move(kind));
  }
  return rows;
}

std::optional<double> in_microseconds(std::optional<double> nanoseconds) {
  if (!nanoseconds) return std::nullopt;
  return *nanoseconds / 1000.0;
}

std::string identity_cell(const PointIdentity& identity, std::string_view column) {
  if (column == "schema_version") return fmt::to_string(schema::kSchemaVersion);
  if (column == "experiment") return identity.experiment;
  if (column == "platform") return identity.platform;
  if (column == "provenance") return identity.modelled ? "modelled" : "measured";
  if (column == "profile") return identity.profile;
  if (column == "system") return identity.system;
  if (column == "seed") return fmt::to_string(identity.seed);
  if (column == "repetition") return fmt::to_string(identity.repetition);
  const auto parameter = identity.parameters.find(column);
  return parameter == identity.parameters.end() ? "" : parameter->second;
}

// Adds the columns latency_* or response_*.
void add_times(Row& row, std::string_view prefix, const measure::Histogram& times) {
  const auto add = [&](std::string_view statistic, std::optional<double> nanoseconds) {
    row.add(fmt::format("{}_{}_us", prefix, statistic), in_microseconds(nanoseconds),
            times.count() > 0);
  };
  const auto add_bounds = [&](std::string_view statistic, const auto& interval) {
    const bool known = interval.has_value();
    add(fmt::format("{}_low", statistic), known ? std::optional(interval->low) : std::nullopt);
    add(fmt::format("{}_high", statistic), known ? std::optional(interval->high) : std::nullopt);
  };
  add("mean", times.mean());
  add("min", times.min());
  add("max", times.max());
  add_bounds("mean", times.mean_interval());
  using Percentile = std::pair<std::string_view, double>;
  for (const auto& [name, percent] :
       {Percentile{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p999", 99.9}, {"p9999", 99.99}}) {
    const auto value = times.percentile_if_enough(percent);
    add(name, value);
    add_bounds(name, value ? times.percentile_interval(percent) : std::nullopt);
  }
}

// Adds the columns from the server's CPU time on; `all`: the row is about all operations.
void add_costs(Row& row, const Measurement& measurement, bool all, bool compared) {
  const auto operations = static_cast<double>(measurement.operations());
  // A driver whose operations run in processes that it does not control has no roles.
  const bool known = all && operations > 0 && !measurement.roles.empty();
  const auto add = [&](std::string_view column, double amount, bool applies = true) {
    row.add(column, amount / operations, known && applies);
  };
  const auto add_cpu = [&](std::string_view column, std::string_view role) {
    add(column, to_microseconds(measurement.costs_of(role).cpu), measurement.roles.contains(role));
  };
  const auto counted = [](std::uint64_t amount) { return static_cast<double>(amount); };
  const auto bytes = [](std::uint64_t bits) { return static_cast<double>(bits) / 8.0; };

  const pmem::Writes writes = measurement.writes();
  const pmem::WriteCounts total = writes.total();
  add_cpu("server_cpu_us_per_op", "server");
  add_cpu("client_cpu_us_per_op", "client");
  add("nvm_field_bytes_per_op", bytes(total.field_bits));
  add("nvm_bytes_issued_per_op", counted(total.bytes_issued));
  add("nvm_bytes_programmed_per_op", counted(total.bytes_programmed), compared);
  add("nvm_bits_flipped_per_op", counted(total.bits_flipped), compared);
  add("nvm_flushes_per_op", counted(total.flushes));
  add("nvm_fences_per_op", counted(total.fences));
  add("nvm_lines_per_op", counted(total.lines));
  add("nvm_media_bytes_per_op", counted(total.media_bytes), compared);
  add("nvm_local_bytes_per_op", bytes(writes.local_store.field_bits));
  add("nvm_one_sided_bytes_per_op", bytes(writes.one_sided.field_bits));
  add("one_sided_reads_per_op", counted(measurement.one_sided_reads));
  row.add("space_used_percent", measurement.space.used_percent(), known);
}

void add_identity(Row& row, const PointIdentity& identity,
                  const std::vector<schema::Column>& columns) {
  for (const schema::Column& column : columns) {
    row.add(column.name, identity_cell(identity, column.name));
  }
}

// The value of a column that the folder's schema adds; nullopt if the point has none.
std::optional<double> declared_value(const Measurement& measurement, std::string_view column) {
  const auto found = measurement.declared.find(column);
  if (found == measurement.declared.end()) return std::nullopt;
  if (!column.ends_with("_per_op")) return found->second;
  const std::uint64_t operations = measurement.operations();
  if (operations == 0) return std::nullopt;
  return found->second / static_cast<double>(operations);
}

void add_noise(Row& row, const std::optional<HostNoise>& measured) {
  const HostNoise noise = measured.value_or(HostNoise());
  row.add("noise", noise.mark(), measured.has_value());
  row.add("load_average", noise.load_average);
  row.add("runnable_before_per_core", noise.runnable_before);
  row.add("runnable_per_core", noise.runnable);
  row.add("waiting_threads", noise.waiting);
  row.add("steal_percent", noise.steal_percent);
  row.add("slowdown_percent", noise.slowdown_percent);
}

}  // namespace

std::string points_csv(const std::vector<const PointResult*>& results,
                       const schema::Schema& schema) {
  // Simulated points have no host, so the file is the same on every machine.
  const bool on_hosts = std::any_of(results.begin(), results.end(), [](const PointResult* result) {
    return !result->identity.modelled;
  });
  std::vector<schema::Column> columns(schema.columns().begin(), schema.columns().end());
  if (on_hosts) {
    const auto noise = schema::noise_columns();
    columns.insert(columns.end(), noise.begin(), noise.end());
  }
  const std::vector<schema::Column> identity = schema.identity();
  std::string out = header(columns);
  for (const PointResult* result : results) {
    const Measurement& measurement = result->measurement;
    for (const RowSource& source : rows_of(measurement)) {
      const bool all = source.operation == "all";
      Row row;
      add_identity(row, result->identity, identity);
      row.add("operation", source.operation);
      row.add("verdict", to_string(measurement.verdict));
      row.add("reason", measurement.reason);
      row.add("method", measurement.method);
      row.add("guarantee", measurement.guarantee);
      row.add("operations", source.measured.operations);
      row.add("errors", source.measured.errors);
      row.add("not_found", source.measured.not_found);
      row.add("torn_reads", measurement.torn_reads, all);
      const double seconds = static_cast<double>(measurement.elapsed.count()) * 1e-12;
      const bool timed = all && seconds > 0;
      row.add("elapsed_s", seconds, timed);
      row.add("throughput_ops_s", measurement.throughput(), timed);
      row.add("tail_percent", measurement.tail_percent(), timed);
      row.add("long_tail", measurement.has_long_tail() ? "yes" : "no", timed);
      const auto saturated = measurement.saturated();
      row.add("saturated", saturated.value_or(false) ? "yes" : "no", all && saturated.has_value());
      add_times(row, "latency", source.measured.latency);
      add_times(row, "response", source.measured.response.value_or(measure::Histogram()));
      // The same in each of the point's rows, since it applies to operations of any kind.
      const auto harness = measurement.harness_per_operation;
      row.add(
          "harness_ns_per_op",
          harness ? std::optional(static_cast<double>(harness->count()) / 1000.0) : std::nullopt);
      add_costs(row, measurement, all,
                result->identity.accounting == pmem::WriteMeter::Level::compared);
      for (const schema::Column& column : schema.declared()) {
        if (column.identifies()) continue;
        row.add(column.name, declared_value(measurement, column.name), all);
      }
      if (on_hosts) add_noise(row, measurement.noise);
      row.append_to(out, columns);
    }
  }
  return out;
}

std::string timeline_csv(const std::vector<const PointResult*>& results,
                         const schema::Schema& schema) {
  const std::vector<schema::Column> identity = schema.identity();
  std::vector<schema::Column> columns = identity;
  columns.insert(columns.end(), schema::timeline_columns().begin(),
                 schema::timeline_columns().end());
  std::string out = header(columns);
  bool recorded = false;
  for (const PointResult* result : results) {
    recorded = recorded || result->measurement.timeline.recorded();
    for (const TimelineInterval& interval : divide(result->measurement.timeline)) {
      Row row;
      add_identity(row, result->identity, identity);
      row.add("time_ms", static_cast<double>(interval.start.count()) / 1e6);
      row.add("operations", interval.operations);
      row.add("latency_mean_us", in_microseconds(interval.mean_ns));
      row.add("latency_max_us", in_microseconds(interval.max_ns));
      row.add("free_percent", interval.free_percent);
      row.add("cleanings", interval.cleanings);
      row.add("cleanings_now", interval.cleanings_now);
      row.append_to(out, columns);
    }
  }
  return recorded ? out : "";
}

std::string histograms_csv(const std::vector<const PointResult*>& results) {
  std::string out = "row,time,low_ns,count\n";
  std::size_t row = 0;
  const auto add = [&](std::string_view time, const measure::Histogram& histogram) {
    histogram.for_each_bucket([&](const measure::Histogram::Bucket& bucket) {
      fmt::format_to(std::back_inserter(out), "{},{},{},{}\n", row, time, bucket.low, bucket.count);
    });
  };
  for (const PointResult* result : results) {
    for (const RowSource& source : rows_of(result->measurement)) {
      add("service", source.measured.latency);
      if (source.measured.response) add("response", *source.measured.response);
      ++row;
    }
  }
  return out;
}

}  // namespace perdura::harness
