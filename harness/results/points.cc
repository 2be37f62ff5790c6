#include "harness/results/points.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

#include "harness/schema/columns.h"
#include "harness/schema/csv_table.h"

namespace perdura::harness {
namespace {

class Row {
 public:
  void text(std::string_view cell) { cells_.push_back(schema::csv_cell(cell)); }
  void number(std::uint64_t value) { cells_.push_back(fmt::to_string(value)); }
  void number(double value) { cells_.push_back(fmt::format("{}", value)); }
  template <class Number>
  void maybe(std::optional<Number> value) {
    if (value) {
      number(*value);
    } else {
      cells_.emplace_back();
    }
  }
  void not_measured(std::size_t count) { cells_.resize(cells_.size() + count); }

  void append_to(std::string& out) const {
    fmt::format_to(std::back_inserter(out), "{}\n", fmt::join(cells_, ","));
  }

 private:
  std::vector<std::string> cells_;
};

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

template <class Number>
std::optional<double> in_microseconds(std::optional<Number> nanoseconds) {
  if (!nanoseconds) return std::nullopt;
  return static_cast<double>(*nanoseconds) / 1000.0;
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

constexpr std::array kPercentiles{50.0, 90.0, 99.0, 99.9, 99.99};

// Adds latencies and response times in the same way.
void add_times(Row& row, const measure::Histogram& latency) {
  if (latency.count() == 0) {
    row.not_measured(schema::kLatencyColumns);
    return;
  }
  row.number(latency.mean() / 1000.0);
  row.maybe(in_microseconds(std::optional(latency.min())));
  for (const double percent : kPercentiles) {
    row.maybe(in_microseconds(latency.percentile_if_enough(percent)));
  }
  row.maybe(in_microseconds(std::optional(latency.max())));

  const auto interval = [&row](const auto& found) {
    row.maybe(found ? in_microseconds(std::optional(found->low)) : std::nullopt);
    row.maybe(found ? in_microseconds(std::optional(found->high)) : std::nullopt);
  };
  interval(latency.mean_interval());
  for (const double percent : kPercentiles) {
    const bool enough = latency.percentile_if_enough(percent).has_value();
    interval(enough ? latency.percentile_interval(percent) : std::nullopt);
  }
}

constexpr std::size_t kCostColumns = 14;  // the number of columns from the server's CPU time on

void add_costs(Row& row, const Measurement& measurement, bool compared) {
  const std::uint64_t operations = measurement.operations();
  // A driver whose operations run in processes that it does not control has no roles.
  if (operations == 0 || measurement.roles.empty()) {
    row.not_measured(kCostColumns);
    return;
  }
  const auto per_operation = [&](double amount) {
    return amount / static_cast<double>(operations);
  };
  const auto counted = [&](std::uint64_t amount) {
    row.number(per_operation(static_cast<double>(amount)));
  };
  const auto counted_if = [&](bool known, std::uint64_t amount) {
    if (known) {
      counted(amount);
    } else {
      row.not_measured(1);
    }
  };
  const auto bytes = [](std::uint64_t bits) { return static_cast<double>(bits) / 8.0; };

  for (const std::string_view role : {"server", "client"}) {
    if (measurement.roles.contains(role)) {
      row.number(per_operation(to_microseconds(measurement.costs_of(role).cpu)));
    } else {
      row.not_measured(1);
    }
  }
  const pmem::Writes writes = measurement.writes();
  const pmem::WriteCounts total = writes.total();
  row.number(per_operation(bytes(total.field_bits)));
  counted(total.bytes_issued);
  counted_if(compared, total.bytes_programmed);
  counted_if(compared, total.bits_flipped);
  counted(total.flushes);
  counted(total.fences);
  counted(total.lines);
  counted_if(compared, total.media_bytes);
  row.number(per_operation(bytes(writes.local_store.field_bits)));
  row.number(per_operation(bytes(writes.one_sided.field_bits)));
  counted(measurement.one_sided_reads);
  row.maybe(measurement.space.used_percent());
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

void add_noise(Row& row, const std::optional<HostNoise>& noise) {
  if (!noise) {
    row.not_measured(schema::noise_columns().size());
    return;
  }
  row.text(noise->mark());
  row.maybe(noise->load_average);
  row.maybe(noise->runnable_before);
  row.maybe(noise->runnable);
  row.maybe(noise->waiting);
  row.maybe(noise->steal_percent);
  row.maybe(noise->slowdown_percent);
}

}  // namespace

std::string points_csv(const std::vector<const PointResult*>& results,
                       const schema::Schema& schema) {
  std::string out;
  for (const schema::Column& column : schema.columns()) {
    if (!out.empty()) out += ',';
    out += column.name;
  }
  // Simulated points have no host, so the file is the same on every machine.
  const bool on_hosts = std::any_of(results.begin(), results.end(), [](const PointResult* result) {
    return !result->identity.modelled;
  });
  if (on_hosts) {
    for (const schema::Column& column : schema::noise_columns()) {
      out += ',';
      out += column.name;
    }
  }
  out += '\n';
  for (const PointResult* result : results) {
    const Measurement& measurement = result->measurement;
    for (const RowSource& source : rows_of(measurement)) {
      const bool all = source.operation == "all";
      Row row;
      for (const schema::Column& column : schema::identity_columns()) {
        row.text(identity_cell(result->identity, column.name));
      }
      row.text(source.operation);
      row.text(to_string(measurement.verdict));
      row.text(measurement.reason);
      row.text(measurement.method);
      row.text(measurement.guarantee);
      row.number(source.measured.operations);
      row.number(source.measured.errors);
      row.number(source.measured.not_found);
      if (all) {
        row.number(measurement.torn_reads);
      } else {
        row.not_measured(1);
      }
      const double seconds = static_cast<double>(measurement.elapsed.count()) * 1e-12;
      if (all && seconds > 0) {
        row.number(seconds);
        row.maybe(measurement.throughput());
        row.number(measurement.tail_percent());
        row.text(measurement.has_long_tail() ? "yes" : "no");
      } else {
        row.not_measured(4);
      }
      const auto saturated = all ? measurement.saturated() : std::nullopt;
      row.text(!saturated ? "" : *saturated ? "yes" : "no");
      add_times(row, source.measured.latency);
      add_times(row, source.measured.response.value_or(measure::Histogram()));
      // The same in each of the point's rows, since it applies to operations of any kind.
      const auto harness = measurement.harness_per_operation;
      row.maybe(harness ? std::optional(static_cast<double>(harness->count()) / 1000.0)
                        : std::nullopt);
      if (all) {
        add_costs(row, measurement,
                  result->identity.accounting == pmem::WriteMeter::Level::compared);
      } else {
        row.not_measured(kCostColumns);
      }
      for (const schema::Column& column : schema.declared()) {
        if (column.identifies()) {
          row.text(identity_cell(result->identity, column.name));
        } else {
          row.maybe(all ? declared_value(measurement, column.name) : std::nullopt);
        }
      }
      if (on_hosts) add_noise(row, measurement.noise);
      row.append_to(out);
    }
  }
  return out;
}

std::string timeline_csv(const std::vector<const PointResult*>& results,
                         const schema::Schema& schema) {
  std::string out;
  const std::vector<schema::Column> identity = schema.identity();
  for (const auto columns :
       {std::span<const schema::Column>(identity), schema::timeline_columns()}) {
    for (const schema::Column& column : columns) {
      fmt::format_to(std::back_inserter(out), "{},", column.name);
    }
  }
  out.back() = '\n';
  bool recorded = false;
  for (const PointResult* result : results) {
    recorded = recorded || result->measurement.timeline.recorded();
    for (const TimelineInterval& interval : divide(result->measurement.timeline)) {
      Row row;
      for (const schema::Column& column : identity) {
        row.text(identity_cell(result->identity, column.name));
      }
      row.number(static_cast<double>(interval.start.count()) / 1e6);
      row.number(interval.operations);
      row.maybe(in_microseconds(interval.mean_ns));
      row.maybe(in_microseconds(interval.max_ns));
      row.maybe(interval.free_percent);
      row.maybe(interval.cleanings);
      row.maybe(interval.cleanings_now);
      row.append_to(out);
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
