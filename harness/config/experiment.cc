#include "harness/config/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "harness/config/document.h"
#include "harness/config/systems.h"
#include "harness/program/data_folders.h"
#include "harness/schema/spec_reader.h"
#include "platform/base/error.h"
#include "platform/base/plain_name.h"
#include "platform/base/suggestion.h"

namespace perdura::harness {
namespace {

// The largest integer of TOML.
constexpr std::uint64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();

constexpr std::array<std::string_view, 17> kTopLevel{
    "name",        "description", "driver",   "platform", "profile", "seed",
    "repetitions", "accounting",  "workload", "roles",    "matrix",  "systems",
    "shm",         "verbs",       "timeline", "figure",   "table"};

constexpr std::string_view kSystem = "system";
constexpr std::string_view kCompletion = "completion";
constexpr std::array<std::string_view, 2> kCompletionModes{"event", "polling"};
constexpr std::array<Parameter, 2> kCommonParameters{{
    {.name = kSystem, .type = Name{}, .identifies = true},
    {.name = kCompletion, .type = OneOf{kCompletionModes}, .usual = "event"},
}};

const Parameter* parameter_of(const Experiment& experiment, std::string_view name) {
  const Parameter* const common = find_parameter(kCommonParameters, name);
  return common != nullptr ? common : find_parameter(experiment.declared.parameters, name);
}

std::vector<std::string_view> parameter_names(const Experiment& experiment) {
  std::vector<std::string_view> names;
  for (const auto table : {common_parameters(), experiment.declared.parameters}) {
    for (const Parameter& parameter : table) names.push_back(parameter.name);
  }
  return names;
}

CompletionMode completion_mode(const ParameterValue& value) {
  return value.text() == "polling" ? CompletionMode::polling : CompletionMode::event;
}

void assign(std::string_view parameter, const Axis::Value& value, PointSettings& point) {
  if (parameter == kSystem) {
    point.system = {value.value.text(), value.where};
  } else if (parameter == kCompletion) {
    point.set_completion(completion_mode(value.value));
  } else {
    point.set(parameter, value.value, value.where);
  }
}

Located located(const TomlSection& top, std::string_view key, std::string fallback) {
  auto text = top.text(key);
  return {text.value_or(std::move(fallback)), top.where(key)};
}

void read_identity(const TomlSection& top, Experiment& experiment) {
  const auto name = top.text("name");
  if (!name) top.missing("name", "add name = \"...\"");
  if (!is_plain_name(*name)) {
    top.wrong(*top.table().get("name"), "name",
              "names a folder, so it may hold letters, digits, '-', '_' and '.' only");
  }
  experiment.name = *name;
  experiment.description = top.text("description").value_or("");
  experiment.driver = located(top, "driver", "kv");
  experiment.platform = located(top, "platform", "sim");
  experiment.profile = located(top, "profile", "");
  experiment.seed = top.number("seed", 0, kMaxInteger).value_or(1);
  experiment.repetitions = top.number("repetitions", 1, 10'000).value_or(1);
  const std::string accounting = top.text("accounting").value_or("issued");
  if (accounting != "issued" && accounting != "compared") {
    top.wrong(
        *top.table().get("accounting"), "accounting",
        fmt::format("must be \"issued\" or \"compared\" ({})", document_path("accounting.md")));
  }
  experiment.accounting = accounting == "compared" ? pmem::WriteMeter::Level::compared
                                                   : pmem::WriteMeter::Level::issued;
}

void choose_driver(const Declarations& declarations, Experiment& experiment) {
  std::vector<std::string_view> known;
  for (const DriverDeclarations& driver : declarations.drivers) {
    known.push_back(driver.name);
    if (driver.name == experiment.driver.text) experiment.declared = driver;
  }
  if (experiment.declared.name.empty()) {
    throw UsageError(fmt::format("{}: {}", experiment.driver.where,
                                 unknown_name("driver", experiment.driver.text, known)));
  }
  experiment.base = PointSettings(experiment.declared.parameters);
}

void read_workload(const TomlSection& workload, Experiment& experiment) {
  const auto names = parameter_names(experiment);
  workload.allow_only(names);
  for (const std::string_view name : names) {
    const toml::node* node = workload.table().get(name);
    if (node == nullptr) continue;
    if (node->is_array()) workload.wrong(*node, name, "is a list; lists go to [matrix]");
    assign(name, {workload.value_of(*node, *parameter_of(experiment, name)), workload.where(name)},
           experiment.base);
  }
}

void read_roles(const TomlSection& roles, Experiment& experiment) {
  std::vector<std::string> keys;
  for (const std::string& role : experiment.declared.roles) {
    keys.push_back(fmt::format("{}_{}", role, kCompletion));
  }
  roles.allow_only(std::vector<std::string_view>(keys.begin(), keys.end()));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const toml::node* node = roles.table().get(keys[i]);
    if (node == nullptr) continue;
    const Parameter of_role{.name = keys[i], .type = OneOf{kCompletionModes}};
    experiment.base.set_completion(experiment.declared.roles[i],
                                   completion_mode(roles.value_of(*node, of_role)));
  }
}

Axis read_axis(const TomlSection& matrix, const Parameter& parameter, const toml::node& node) {
  const toml::array* list = node.as_array();
  if (list == nullptr || list->empty()) {
    matrix.wrong(node, parameter.name,
                 fmt::format("must be a list with at least one value, but is {}",
                             list == nullptr ? words_for(node) : "empty"));
  }
  if (!parameter.identifies && list->size() > 1) {
    matrix.wrong(node, parameter.name,
                 "can have one value only: points.csv has no column to tell its rows apart");
  }
  Axis axis{std::string(parameter.name), {}};
  for (const toml::node& item : *list) {
    Axis::Value value{matrix.value_of(item, parameter), matrix.where(item)};
    const bool twice = std::any_of(axis.values.begin(), axis.values.end(),
                                   [&](const auto& other) { return other.value == value.value; });
    if (twice) matrix.wrong(item, parameter.name, "has a value twice");
    axis.values.push_back(std::move(value));
  }
  return axis;
}

void read_matrix(const TomlSection& top, const TomlSection& matrix, Experiment& experiment) {
  matrix.allow_only(parameter_names(experiment));
  const auto workload = top.section("workload");
  std::vector<std::pair<const toml::key*, const toml::node*>> entries;
  for (const auto& [key, node] : matrix.table()) {
    if (workload && workload->has(key.str())) {
      matrix.wrong(node, key.str(),
                   fmt::format("is in [workload] too ({}); keep one", workload->where(key.str())));
    }
    entries.emplace_back(&key, &node);
  }
  // TOML tables are unordered, but a sweep runs in the order in which its parameters are written.
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.first->source().begin < b.first->source().begin;
  });
  for (const auto& [key, node] : entries) {
    const Parameter& parameter = *parameter_of(experiment, key->str());
    experiment.matrix.push_back(read_axis(matrix, parameter, *node));
  }
}

void read_shm(const TomlSection& shm, Experiment& experiment) {
  constexpr std::array<std::string_view, 3> known{"network_latency_ns", "write_latency_ns",
                                                  "pm_directory"};
  constexpr std::uint64_t second = 1'000'000'000;
  shm.allow_only(known);
  experiment.shm.network_latency_ns = shm.number(known[0], 0, second).value_or(0);
  experiment.shm.write_latency_ns = shm.number(known[1], 0, second).value_or(0);
  experiment.shm.pm_directory = {shm.text(known[2]).value_or(""), shm.where(known[2])};
}

void read_verbs(const TomlSection& verbs, Experiment& experiment) {
  constexpr std::array<std::string_view, 5> known{"device", "port", "gid_index", "odp",
                                                  "pm_directory"};
  verbs.allow_only(known);
  VerbsSettings& settings = experiment.verbs;
  settings.device = verbs.text(known[0]).value_or("");
  settings.port = verbs.number(known[1], 1, 255);
  settings.gid_index = verbs.number(known[2], 0, 65535);
  settings.on_demand_paging = verbs.flag(known[3]).value_or(settings.on_demand_paging);
  settings.pm_directory = {verbs.text(known[4]).value_or(""), verbs.where(known[4])};
}

void read_timeline(const TomlSection& timeline, Experiment& experiment) {
  constexpr std::array<std::string_view, 1> known{"interval_us"};
  timeline.allow_only(known);
  const auto interval = timeline.number(known[0], 10, 60'000'000);
  if (!interval) timeline.missing(known[0], "add whole microseconds, interval_us = ...");
  experiment.timeline_interval = Microseconds(*interval);
}

// A sweep may take hours, so errors that would make its report fail are detected at its start.
void read_figures(const Document& document, const schema::Schema& schema, Experiment& experiment) {
  const auto where = [&](const toml::source_region& part) { return document.where(part); };
  auto specs = schema::read_specs(document.table(), where, schema);
  if (!specs) throw UsageError(specs.error().message);
  experiment.specs = std::move(*specs);
  for (const schema::FigureSpec& figure : experiment.specs.figures) {
    if (figure.data != schema::FigureSpec::Data::timeline) continue;
    if (experiment.timeline_interval != Nanoseconds{}) continue;
    throw UsageError(
        fmt::format("{}: figure {} is drawn over time; add [timeline] with "
                    "interval_us = ...",
                    figure.data_place, figure.id));
  }
}

// The place where a point's parameter is given; nullopt if it is not.
std::optional<std::string> place_of(std::string_view name, const TomlSection& top) {
  for (const std::string_view part : {"workload", "matrix"}) {
    const auto section = top.section(part);
    if (section && section->has(name)) return section->where(name);
  }
  return std::nullopt;
}

// Checks that all mandatory parameters are given and that all dependencies between parameters hold.
void check_complete(const Experiment& experiment, const TomlSection& top) {
  for (const std::string_view name : parameter_names(experiment)) {
    const Parameter& parameter = *parameter_of(experiment, name);
    const auto place = place_of(name, top);
    const bool must = std::holds_alternative<Name>(parameter.type) && !parameter.usual.exists();
    if (!place && must) {
      throw UsageError(fmt::format("{}: no {}; add {} = [\"...\"] to [matrix] (see 'perdura list')",
                                   experiment.file, name, name));
    }
    for (const Parameter::Need& need : parameter.needs) {
      if (!place || need.parameter.empty() || place_of(need.parameter, top)) continue;
      throw UsageError(
          fmt::format("{}: {} needs {} = ..., {}", *place, name, need.parameter, need.what));
    }
  }
  const auto roles = top.section("roles");
  if (place_of(kCompletion, top) && roles && !roles->table().empty()) {
    throw UsageError(fmt::format("{}: completion is given for both roles and in [roles]; keep one",
                                 top.where("roles")));
  }
}

}  // namespace

std::span<const Parameter> common_parameters() { return kCommonParameters; }

CompletionMode PointSettings::completion(std::string_view role) const {
  const auto own = of_role_.find(role);
  return own == of_role_.end() ? completion_ : own->second;
}

Experiment read_experiment(const Document& document, const Declarations& declarations) {
  const TomlSection top = document.top();
  top.allow_only(kTopLevel);

  Experiment experiment;
  experiment.file = document.name();
  experiment.text = document.text();
  read_identity(top, experiment);
  choose_driver(declarations, experiment);
  if (const auto workload = top.section("workload")) read_workload(*workload, experiment);
  if (const auto roles = top.section("roles")) read_roles(*roles, experiment);
  if (const auto matrix = top.section("matrix")) read_matrix(top, *matrix, experiment);
  if (const auto systems = top.section("systems")) read_systems(*systems, experiment);
  if (const auto shm = top.section("shm")) read_shm(*shm, experiment);
  if (const auto verbs = top.section("verbs")) read_verbs(*verbs, experiment);
  if (const auto timeline = top.section("timeline")) read_timeline(*timeline, experiment);
  read_figures(document, declarations.columns, experiment);
  check_complete(experiment, top);
  check_system_names(experiment);
  return experiment;
}

Experiment load_experiment(const std::filesystem::path& file, const Declarations& declarations,
                           std::span<const Override> overrides) {
  return read_experiment(Document::read(file, overrides), declarations);
}

std::vector<PointSettings> expand(const Experiment& experiment) {
  std::vector<PointSettings> points{experiment.base};
  for (const Axis& axis : experiment.matrix) {
    std::vector<PointSettings> longer;
    longer.reserve(points.size() * axis.values.size());
    for (const PointSettings& point : points) {
      for (const Axis::Value& value : axis.values) {
        longer.push_back(point);
        assign(axis.parameter, value, longer.back());
      }
    }
    points = std::move(longer);
  }
  return points;
}

}  // namespace perdura::harness
