#include "harness/run/point.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "harness/config/section.h"
#include "platform/error.h"

namespace perdura::harness {
namespace {

std::string value_in_label(const std::string& parameter, const PointSettings& settings) {
  if (parameter == "system") return settings.system.text;
  if (parameter == "workload") return settings.workload.text;
  const auto number = [&]() -> std::uint64_t {
    if (parameter == "records") return settings.records.value_or(0);
    if (parameter == "key_size") return settings.key_size.value_or(0);
    if (parameter == "value_size") return settings.value_size.value_or(0);
    if (parameter == "clients") return settings.clients;
    if (parameter == "queue_depth") return settings.queue_depth;
    return settings.server_threads;
  };
  return fmt::format("{}={}", parameter, number());
}

std::string label_of(const Experiment& experiment, const PointSettings& settings,
                     std::uint64_t repetition) {
  std::string label;
  for (const Axis& axis : experiment.matrix) {
    if (axis.values.size() < 2 && axis.parameter != "system") continue;
    if (!label.empty()) label += ' ';
    label += value_in_label(axis.parameter, settings);
  }
  if (experiment.repetitions > 1) label += fmt::format(" repetition={}", repetition);
  return label.empty() ? settings.system.text : label;
}

std::optional<std::uint32_t> narrow(const std::optional<std::uint64_t>& value) {
  if (!value) return std::nullopt;
  return static_cast<std::uint32_t>(*value);  // parameters.cc keeps it in range
}

workload::WorkloadSpec load_workload(const PointSettings& settings, const Locations& locations) {
  const auto file = locations.find(FileKind::workload, settings.workload);
  auto spec = workload::workload_from_file(file, {.record_count = settings.records,
                                                  .operation_count = settings.operations,
                                                  .key_size = narrow(settings.key_size),
                                                  .value_size = narrow(settings.value_size)});
  if (!spec) {
    throw UsageError(fmt::format("{}: workload {}: {}", settings.workload.where,
                                 settings.workload.text, spec.error().message));
  }
  return std::move(*spec);
}

Point plan_point(const Experiment& experiment, const PointSettings& settings,
                 const Locations& locations, NodeId default_client_nodes) {
  Point point;
  point.settings = settings;
  point.workload = load_workload(settings, locations);
  point.workload_name = plain_name(FileKind::workload, settings.workload.text);
  const auto parameters = experiment.systems.find(settings.system.text);
  if (parameters != experiment.systems.end()) point.parameters = parameters->second.values;
  point.accounting = experiment.accounting;
  point.client_nodes = static_cast<NodeId>(settings.client_nodes.value_or(default_client_nodes));
  point.label = label_of(experiment, settings, 0);
  if (point.workload.operation_count == 0) {
    throw UsageError(fmt::format("{}: no number of operations; add operations = ... to [workload]",
                                 experiment.file));
  }
  return point;
}

void check_systems(const Experiment& experiment, const Driver& driver) {
  const std::vector<std::string_view> known = driver.systems();
  for (const auto& [name, parameters] : experiment.systems) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw UsageError(fmt::format("{}: unknown system '{}'; known are: {}", parameters.where, name,
                                   join_names(known)));
    }
  }
}

// Two files of one name would give rows that cannot be told apart.
void check_workload_names(const std::vector<Point>& points) {
  std::map<std::string, const Located*> seen;
  for (const Point& point : points) {
    const Located& file = point.settings.workload;
    const auto [entry, added] = seen.emplace(point.workload_name, &file);
    if (!added && entry->second->text != file.text) {
      throw UsageError(fmt::format("{}: workloads {} and {} have the same name in results",
                                   file.where, entry->second->text, file.text));
    }
  }
}

}  // namespace

std::vector<Point> plan_points(const Experiment& experiment, const Locations& locations,
                               const Driver& driver, NodeId default_client_nodes) {
  check_systems(experiment, driver);
  std::vector<Point> points;
  for (const PointSettings& settings : expand(experiment)) {
    Point point = plan_point(experiment, settings, locations, default_client_nodes);
    driver.check(point);
    for (std::uint64_t repetition = 0; repetition < experiment.repetitions; ++repetition) {
      point.repetition = repetition;
      point.seed = experiment.seed + repetition;
      point.label = label_of(experiment, settings, repetition);
      points.push_back(point);
    }
  }
  check_workload_names(points);
  return points;
}

}  // namespace perdura::harness
