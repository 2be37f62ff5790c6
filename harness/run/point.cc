#include "harness/run/point.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <type_traits>
#include <variant>

#include "harness/config/parameters.h"
#include "harness/run/interval_costs.h"
#include "harness/text/suggestion.h"
#include "platform/base/error.h"

namespace perdura::harness {
namespace {

std::string value_in_label(const std::string& name, const PointSettings& settings) {
  const auto label = [&](auto target) -> std::string {
    using Target = decltype(target);
    if constexpr (std::is_same_v<Target, Parameter::Name>) {
      return (settings.*target).text;
    } else if constexpr (std::is_same_v<Target, Parameter::Choice>) {
      return fmt::format("{}={}", name, settings.*target.text);
    } else if constexpr (std::is_same_v<Target, Parameter::Number>) {
      return fmt::format("{}={}", name, settings.*target);
    } else if constexpr (std::is_same_v<Target, Parameter::OptionalNumber>) {
      return fmt::format("{}={}", name, (settings.*target).value_or(0));
    } else {
      return name;  // has no column, and so is not varied
    }
  };
  return std::visit(label, find_parameter(name)->target);
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
    throw UsageError(fmt::format("{}: {}", settings.workload.where, spec.error().message));
  }
  return std::move(*spec);
}

// What a variant does not say is as for the system that it is a variant of.
void choose_system(const Experiment& experiment, Point& point) {
  Located& system = point.settings.system;
  point.system_name = system.text;
  const auto named = experiment.systems.find(system.text);
  if (named == experiment.systems.end()) return;
  point.parameters = named->second.parameters;
  point.parameter_places = named->second.places;
  const std::string& base = named->second.variant_of.text;
  if (base.empty()) return;
  system.text = base;
  if (const auto of_base = experiment.systems.find(base); of_base != experiment.systems.end()) {
    point.parameters.insert(of_base->second.parameters.begin(), of_base->second.parameters.end());
    point.parameter_places.insert(of_base->second.places.begin(), of_base->second.places.end());
  }
}

Point plan_point(const Experiment& experiment, const PointSettings& settings,
                 const Locations& locations, const Driver& driver, NodeId nodes) {
  Point point;
  point.settings = settings;
  point.workload = load_workload(settings, locations);
  point.workload_name = plain_name(FileKind::workload, settings.workload.text);
  choose_system(experiment, point);
  point.accounting = experiment.accounting;
  point.timeline_interval = experiment.timeline_interval;
  point.roles = driver.roles(settings, nodes);
  point.label = label_of(experiment, settings, 0);
  if (point.workload.operation_count == 0) {
    throw UsageError(fmt::format("{}: no number of operations; add operations = ... to [workload]",
                                 experiment.file));
  }
  return point;
}

// The names in [systems] and [matrix]: systems of the driver, and variants of them.
void check_systems(const Experiment& experiment, const Driver& driver) {
  const std::vector<std::string_view> known = driver.systems();
  const auto is_known = [&known](std::string_view name) {
    return std::find(known.begin(), known.end(), name) != known.end();
  };
  for (const auto& [name, settings] : experiment.systems) {
    const Located& base = settings.variant_of;
    if (base.text.empty() && !is_known(name)) {
      throw UsageError(fmt::format("{}: {}; a variant of one needs variant_of = \"...\"",
                                   settings.where, unknown_name("system", name, known)));
    }
    if (!base.text.empty() && is_known(name)) {
      throw UsageError(
          fmt::format("{}: variant_of in [systems.{}]: '{}' is a system; give the "
                      "variant another name",
                      base.where, name, name));
    }
  }
  for (const auto& [name, settings] : experiment.systems) {
    const Located& base = settings.variant_of;
    if (base.text.empty() || is_known(base.text)) continue;
    const std::string where = fmt::format("{}: variant_of in [systems.{}]", base.where, name);
    if (experiment.systems.contains(base.text)) {
      throw UsageError(
          fmt::format("{}: '{}' is a variant itself; name a system and repeat the "
                      "parameters",
                      where, base.text));
    }
    throw UsageError(fmt::format("{}: {}", where, unknown_name("system", base.text, known)));
  }
  for (const PointSettings& settings : expand(experiment)) {
    const Located& system = settings.system;
    if (is_known(system.text) || experiment.systems.contains(system.text)) continue;
    std::vector<std::string_view> names = known;
    for (const auto& [name, of_name] : experiment.systems) {
      if (!of_name.variant_of.text.empty()) names.push_back(name);
    }
    throw UsageError(
        fmt::format("{}: {}", system.where, unknown_name("system", system.text, names)));
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

// That several drivers and systems declare, each once.
class Columns {
 public:
  void add(const Roles& roles) { add(role_columns(roles).declared()); }
  void add(std::span<const report::Column> columns) {
    std::vector<report::Column> all(schema_.declared().begin(), schema_.declared().end());
    all.insert(all.end(), columns.begin(), columns.end());
    schema_ = report::Schema(all);
  }
  const report::Schema& schema() const { return schema_; }

 private:
  report::Schema schema_;
};

}  // namespace

report::Schema schema_of(std::span<const Driver* const> drivers) {
  Columns columns;
  for (const Driver* driver : drivers) {
    columns.add(driver->roles({}, 0));
    for (const std::string_view system : driver->systems()) columns.add(driver->columns(system));
  }
  return columns.schema();
}

report::Schema schema_of(const Driver& driver, const std::vector<Point>& points) {
  Columns columns;
  for (const Point& point : points) {
    columns.add(point.roles);
    columns.add(driver.columns(point.settings.system.text));
  }
  return columns.schema();
}

std::vector<Point> plan_points(const Experiment& experiment, const Locations& locations,
                               const Driver& driver, NodeId nodes) {
  check_systems(experiment, driver);
  std::vector<Point> points;
  for (const PointSettings& settings : expand(experiment)) {
    Point point = plan_point(experiment, settings, locations, driver, nodes);
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
