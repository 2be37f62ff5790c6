#include "harness/run/point.h"

#include <fmt/format.h>

#include <map>
#include <utility>
#include <variant>

#include "harness/run/interval_costs.h"
#include "platform/base/error.h"

namespace perdura::harness {
namespace {

std::string value_in_label(const std::string& name, const PointSettings& settings) {
  if (name == "system") return settings.system.text;
  if (!settings.declares(name)) return name;  // it has no column, so it is not varied
  const std::string text = settings.to_text(name);
  const bool names = std::holds_alternative<Name>(find_parameter(settings.table(), name)->type);
  return names ? text : fmt::format("{}={}", name, text);
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

// Gives the point what [systems.NAME.workload] says instead of [workload].
void replace_settings(const SystemSettings& of_system, PointSettings& settings) {
  for (const auto& [name, value] : of_system.workload) {
    settings.set(name, value, of_system.workload_places.find(name)->second);
  }
}

// Settings that a variant does not have come from the system of which it is a variant.
void choose_system(const Experiment& experiment, Point& point) {
  Located& system = point.settings.system;
  point.system_name = system.text;
  const auto named = experiment.systems.find(system.text);
  if (named == experiment.systems.end()) return;
  point.parameters = named->second.parameters;
  point.parameter_places = named->second.places;
  const std::string& base = named->second.variant_of.text;
  if (!base.empty()) {
    system.text = base;
    if (const auto of_base = experiment.systems.find(base); of_base != experiment.systems.end()) {
      point.parameters.insert(of_base->second.parameters.begin(), of_base->second.parameters.end());
      point.parameter_places.insert(of_base->second.places.begin(), of_base->second.places.end());
      replace_settings(of_base->second, point.settings);
    }
  }
  replace_settings(named->second, point.settings);
}

Point plan_point(const Experiment& experiment, const PointSettings& settings,
                 const Locations& locations, const Driver& driver, NodeId nodes) {
  Point point;
  point.settings = settings;
  choose_system(experiment, point);
  point.accounting = experiment.accounting;
  point.timeline_interval = experiment.timeline_interval;
  point.roles = driver.roles(point.settings, nodes);
  point.label = label_of(experiment, settings, 0);
  driver.prepare(point, locations);
  return point;
}

// Rows of two different files with the same name could not be told apart.
void check_file_names(const std::vector<Point>& points) {
  std::map<std::pair<std::string, std::string>, const Located*> seen;
  for (const Point& point : points) {
    for (const PointFile& file : point.files) {
      const auto [entry, added] =
          seen.emplace(std::pair(file.kind, file.name_in_results), &file.name);
      if (!added && entry->second->text != file.name.text) {
        throw UsageError(fmt::format("{}: {}s {} and {} have the same name in results",
                                     file.name.where, file.kind, entry->second->text,
                                     file.name.text));
      }
    }
  }
}

// Collects the columns that several drivers and systems declare, each once.
class Columns {
 public:
  void add(const schema::Schema& schema) { add(schema.declared()); }
  void add(std::span<const schema::Column> columns) {
    std::vector<schema::Column> all(schema_.declared().begin(), schema_.declared().end());
    all.insert(all.end(), columns.begin(), columns.end());
    schema_ = schema::Schema(all);
  }
  const schema::Schema& schema() const { return schema_; }

 private:
  schema::Schema schema_;
};

// True if the parameter's column belongs into the results of these points.
bool says_something(const Driver& driver, const schema::Column& column,
                    const std::vector<Point>& points) {
  const auto left_out = driver.columns_if_unusual();
  if (std::find(left_out.begin(), left_out.end(), column.name) == left_out.end()) return true;
  return std::any_of(points.begin(), points.end(), [&](const Point& point) {
    return point.settings.to_text(column.name) != column.usual;
  });
}

// The titles of the systems that the points run, without systems that have no title.
std::vector<schema::Spelling> titles_of(const Driver& driver, const std::vector<Point>& points) {
  std::vector<schema::Spelling> titles;
  for (const auto& system : driver.systems()) {
    const bool runs = std::any_of(points.begin(), points.end(), [&](const Point& point) {
      return point.settings.system.text == system.name;
    });
    if (runs && !system.title.empty()) titles.push_back({system.name, system.title});
  }
  return titles;
}

}  // namespace

const std::string& Point::place_of(std::string_view parameter) const {
  const auto place = parameter_places.find(parameter);
  if (place != parameter_places.end()) return place->second;
  const bool is_setting = settings.declares(parameter) && settings.given(parameter);
  if (is_setting && !settings.where(parameter).empty()) return settings.where(parameter);
  return settings.system.where;
}

Declarations declarations_of(std::span<const Driver* const> drivers) {
  Declarations declarations;
  Columns columns;
  for (const Driver* driver : drivers) {
    const Roles roles = driver->roles(PointSettings(driver->parameters()), 0);
    auto& declared = declarations.drivers.emplace_back();
    declared = {driver->name(), driver->parameters(), {}, driver->systems()};
    for (const Role& role : roles) declared.roles.push_back(role.name);
    columns.add(schema::parameter_columns(driver->parameters()));
    columns.add(role_columns(roles));
    for (const auto& system : declared.systems) columns.add(driver->columns(system.name));
  }
  declarations.columns = columns.schema();
  return declarations;
}

schema::Schema schema_of(const Driver& driver, const std::vector<Point>& points) {
  Columns columns;
  const schema::Schema of_parameters = schema::parameter_columns(driver.parameters());
  for (const schema::Column& column : of_parameters.declared()) {
    if (says_something(driver, column, points)) columns.add(std::span(&column, 1));
  }
  for (const Point& point : points) {
    columns.add(role_columns(point.roles));
    columns.add(driver.columns_of(point));
  }
  schema::Schema schema = columns.schema();
  schema.set_words("system", titles_of(driver, points));
  return schema;
}

std::vector<Point> plan_points(const Experiment& experiment, const Locations& locations,
                               const Driver& driver, NodeId nodes) {
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
  check_file_names(points);
  return points;
}

}  // namespace perdura::harness
