#include "harness/config/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "harness/config/parameters.h"
#include "harness/config/section.h"
#include "harness/schema/spec_reader.h"
#include "platform/base/error.h"

namespace perdura::harness {
namespace {

constexpr std::uint64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();  // of TOML

constexpr std::array<std::string_view, 17> kTopLevel{
    "name",        "description", "driver",   "platform", "profile", "seed",
    "repetitions", "accounting",  "workload", "roles",    "matrix",  "systems",
    "shm",         "verbs",       "timeline", "figure",   "table"};

std::vector<std::string_view> parameter_names() {
  std::vector<std::string_view> names;
  for (const Parameter& parameter : parameters()) names.push_back(parameter.name);
  return names;
}

Located located(const Section& top, std::string_view key, std::string fallback) {
  auto text = top.text(key);
  return {text.value_or(std::move(fallback)), top.where(key)};
}

// Fit for the name of a file.
bool is_plain(std::string_view name) {
  return !name.empty() && name.front() != '.' && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

void read_identity(const Section& top, Experiment& experiment) {
  const auto name = top.text("name");
  if (!name) throw UsageError(fmt::format("{}: name = \"...\" is missing", experiment.file));
  if (!is_plain(*name)) {
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
    top.wrong(*top.table().get("accounting"), "accounting",
              "must be \"issued\" or \"compared\" (docs/accounting.md)");
  }
  experiment.accounting = accounting == "compared" ? pmem::WriteMeter::Level::compared
                                                   : pmem::WriteMeter::Level::issued;
}

void read_workload(const Section& workload, Experiment& experiment) {
  workload.allow_only(parameter_names());
  for (const Parameter& parameter : parameters()) {
    const toml::node* node = workload.table().get(parameter.name);
    if (node == nullptr) continue;
    if (node->is_array()) workload.wrong(*node, parameter.name, "is a list; lists go to [matrix]");
    assign(parameter, read_value(workload, *node, parameter, workload.where(parameter.name)),
           experiment.base);
  }
}

void read_roles(const Section& roles, Experiment& experiment) {
  constexpr std::array<std::string_view, 2> known{"server_completion", "client_completion"};
  roles.allow_only(known);
  for (const std::string_view key : known) {
    const toml::node* node = roles.table().get(key);
    if (node == nullptr) continue;
    const bool server = key == known[0];
    const Parameter role{key, Parameter::Completion{server, !server}};
    assign(role, read_value(roles, *node, role, roles.where(key)), experiment.base);
  }
}

Axis read_axis(const Document& document, const Section& matrix, const toml::key& key,
               const toml::node& node) {
  const Parameter& parameter = *find_parameter(key.str());
  const toml::array* list = node.as_array();
  if (list == nullptr || list->empty()) {
    matrix.wrong(node, parameter.name, "must be a list with at least one value");
  }
  if (!parameter.in_results && list->size() > 1) {
    matrix.wrong(node, parameter.name,
                 "can have one value only: points.csv has no column to tell its rows apart");
  }
  Axis axis{std::string(key.str()), {}};
  for (const toml::node& item : *list) {
    Axis::Value value = read_value(matrix, item, parameter, document.where(item.source()));
    const bool twice = std::any_of(axis.values.begin(), axis.values.end(),
                                   [&](const auto& other) { return other.value == value.value; });
    if (twice) matrix.wrong(item, parameter.name, "has a value twice");
    axis.values.push_back(std::move(value));
  }
  return axis;
}

void read_matrix(const Document& document, const Section& top, const Section& matrix,
                 Experiment& experiment) {
  matrix.allow_only(parameter_names());
  const auto workload = top.section("workload");
  std::vector<std::pair<const toml::key*, const toml::node*>> entries;
  for (const auto& [key, node] : matrix.table()) {
    if (workload && workload->has(key.str())) {
      matrix.wrong(node, key.str(),
                   fmt::format("is in [workload] too ({}); keep one", workload->where(key.str())));
    }
    entries.emplace_back(&key, &node);
  }
  // TOML tables are unordered; the order of a sweep is the order of writing.
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.first->source().begin < b.first->source().begin;
  });
  for (const auto& [key, node] : entries) {
    experiment.matrix.push_back(read_axis(document, matrix, *key, *node));
  }
}

void read_system(const Section& system, SystemSettings& settings) {
  for (const auto& [name, value] : system.table()) {
    if (name == "variant_of") {
      settings.variant_of = located(system, name.str(), "");
      if (settings.variant_of.text.empty()) system.wrong(value, name.str(), "must not be empty");
    } else if (name == "title") {
      // For the report, which reads it from the text; here it is only checked. gnuplot cuts texts
      // off at these characters, quoted or not.
      const std::string title = system.text_of(value, name.str());
      if (title.empty() || title.find_first_of(",\"\n\r") != std::string::npos) {
        system.wrong(value, name.str(),
                     "must not be empty, nor hold a comma, a quotation mark or a line end");
      }
    } else {
      settings.parameters[std::string(name.str())] =
          system.number_of(value, name.str(), 0, kMaxInteger);
      settings.places[std::string(name.str())] = system.where(name.str());
    }
  }
}

void read_systems(const Section& systems, Experiment& experiment) {
  for (const auto& [key, node] : systems.table()) {
    SystemSettings& settings = experiment.systems[std::string(key.str())];
    settings.where = systems.where(key.str());
    read_system(*systems.section(key.str()), settings);
    if (!settings.variant_of.text.empty() && !is_plain(key.str())) {
      systems.wrong(node, key.str(),
                    "names rows of the results, so it may hold letters, digits, '-', '_' and '.' "
                    "only");
    }
  }
}

void read_shm(const Section& shm, Experiment& experiment) {
  constexpr std::array<std::string_view, 3> known{"network_latency_ns", "write_latency_ns",
                                                  "pm_directory"};
  constexpr std::uint64_t second = 1'000'000'000;
  shm.allow_only(known);
  experiment.shm.network_latency_ns = shm.number(known[0], 0, second).value_or(0);
  experiment.shm.write_latency_ns = shm.number(known[1], 0, second).value_or(0);
  experiment.shm.pm_directory = {shm.text(known[2]).value_or(""), shm.where(known[2])};
}

void read_verbs(const Section& verbs, Experiment& experiment) {
  constexpr std::array<std::string_view, 5> known{"device", "port", "gid_index", "odp",
                                                  "pm_directory"};
  verbs.allow_only(known);
  VerbsSettings& settings = experiment.verbs;
  settings.device = verbs.text(known[0]).value_or("");
  settings.port = verbs.number(known[1], 1, 255);
  settings.gid_index = verbs.number(known[2], 0, 65535);
  if (const toml::node* odp = verbs.table().get(known[3])) {
    settings.on_demand_paging = verbs.flag_of(*odp, known[3]);
  }
  settings.pm_directory = {verbs.text(known[4]).value_or(""), verbs.where(known[4])};
}

void read_timeline(const Section& timeline, Experiment& experiment) {
  constexpr std::array<std::string_view, 1> known{"interval_us"};
  timeline.allow_only(known);
  const auto interval = timeline.number(known[0], 10, 60'000'000);
  if (!interval) {
    throw UsageError(fmt::format("{}: [timeline] needs interval_us = ..., whole microseconds",
                                 timeline.where(known[0])));
  }
  experiment.timeline_interval = Microseconds(*interval);
}

// A sweep may take hours: what its report would refuse is refused now.
void read_figures(const Document& document, const report::Schema& schema, Experiment& experiment) {
  const auto where = [&](const toml::source_region& part) { return document.where(part); };
  auto specs = report::read_specs(document.table(), where, schema);
  if (!specs) throw UsageError(specs.error().message);
  experiment.specs = std::move(*specs);
  for (const report::FigureSpec& figure : experiment.specs.figures) {
    if (figure.data != report::FigureSpec::Data::timeline) continue;
    if (experiment.timeline_interval != Nanoseconds{}) continue;
    throw UsageError(
        fmt::format("{}: figure {} is drawn over time; add [timeline] with "
                    "interval_us = ...",
                    figure.data_place, figure.id));
  }
}

void check_complete(const Experiment& experiment, const Section& top) {
  const auto varied = [&](std::string_view name) {
    return std::any_of(experiment.matrix.begin(), experiment.matrix.end(),
                       [&](const Axis& axis) { return axis.parameter == name; });
  };
  if (experiment.base.system.text.empty() && !varied("system")) {
    throw UsageError(
        fmt::format("{}: no system; add system = [\"...\"] to [matrix] (see 'perdura "
                    "list')",
                    experiment.file));
  }
  if (experiment.base.workload.text.empty() && !varied("workload")) {
    throw UsageError(
        fmt::format("{}: no workload; add workload = [\"...\"] to [matrix] (see "
                    "'perdura list')",
                    experiment.file));
  }
  const auto workload = top.section("workload");
  const bool completion = varied("completion") || (workload && workload->has("completion"));
  if (const auto roles = top.section("roles"); completion && roles && !roles->table().empty()) {
    throw UsageError(fmt::format("{}: completion is given for both roles and in [roles]; keep one",
                                 top.where("roles")));
  }
}

// What of the load needs or excludes what else.
void check_load(const Experiment& experiment, const Section& top) {
  const auto place_of = [&](std::string_view name) -> std::optional<std::string> {
    for (const std::string_view part : {"workload", "matrix"}) {
      const auto section = top.section(part);
      if (section && section->has(name)) return section->where(name);
    }
    return std::nullopt;
  };
  const auto needs = [&](std::string_view name, std::string_view other, std::string_view what) {
    const auto place = place_of(name);
    if (!place || place_of(other)) return;
    throw UsageError(fmt::format("{}: {} needs {} = ..., {}", *place, name, other, what));
  };
  for (const PointSettings& point : expand(experiment)) {
    if (point.load != "closed") {
      needs("load", "offered_load", "operations per second of all clients together");
    } else if (const auto place = place_of("offered_load")) {
      throw UsageError(
          fmt::format("{}: offered_load is for an open loop, and a closed loop offers what the "
                      "system takes; set load to \"poisson\" or \"fixed\", or remove it",
                      *place));
    }
  }
  needs("duration_ms", "operations",
        "the most that may be measured, for which the store is made large enough");
  needs("ramp_ms", "warmup", "the most operations before the measured ones");
  needs("steady_slope", "steady_window_ms", "the time within which the rate is looked at");
  needs("steady_window_ms", "steady_slope", "the part by which the rate may change within it");
  needs("steady_slope", "warmup", "the most operations before the measured ones");
}

}  // namespace

Experiment read_experiment(const Document& document, const report::Schema& schema) {
  const Section top(document, document.table(), "");
  top.allow_only(kTopLevel);

  Experiment experiment;
  experiment.file = document.name();
  experiment.text = document.text();
  read_identity(top, experiment);
  if (const auto workload = top.section("workload")) read_workload(*workload, experiment);
  if (const auto roles = top.section("roles")) read_roles(*roles, experiment);
  if (const auto matrix = top.section("matrix")) read_matrix(document, top, *matrix, experiment);
  if (const auto systems = top.section("systems")) read_systems(*systems, experiment);
  if (const auto shm = top.section("shm")) read_shm(*shm, experiment);
  if (const auto verbs = top.section("verbs")) read_verbs(*verbs, experiment);
  if (const auto timeline = top.section("timeline")) read_timeline(*timeline, experiment);
  read_figures(document, schema, experiment);
  check_complete(experiment, top);
  check_load(experiment, top);
  return experiment;
}

Experiment load_experiment(const std::filesystem::path& file, std::span<const Override> overrides,
                           const report::Schema& schema) {
  return read_experiment(Document::read(file, overrides), schema);
}

std::vector<PointSettings> expand(const Experiment& experiment) {
  std::vector<PointSettings> points{experiment.base};
  for (const Axis& axis : experiment.matrix) {
    const Parameter& parameter = *find_parameter(axis.parameter);
    std::vector<PointSettings> longer;
    longer.reserve(points.size() * axis.values.size());
    for (const PointSettings& point : points) {
      for (const Axis::Value& value : axis.values) {
        longer.push_back(point);
        assign(parameter, value, longer.back());
      }
    }
    points = std::move(longer);
  }
  return points;
}

}  // namespace perdura::harness
