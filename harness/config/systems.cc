#include "harness/config/systems.h"

#include <fmt/format.h>

#include <vector>

#include "platform/base/error.h"
#include "platform/base/plain_name.h"
#include "platform/base/suggestion.h"

namespace perdura::harness {
namespace {

constexpr std::string_view kVariantOf = "variant_of";
constexpr std::string_view kTitle = "title";
constexpr std::string_view kWorkload = "workload";

std::vector<std::string_view> system_names(const Experiment& experiment) {
  std::vector<std::string_view> names;
  for (const auto& system : experiment.declared.systems) names.push_back(system.name);
  return names;
}

// The driver's system with that name; null if there is none.
const DriverDeclarations::System* find_system(const Experiment& experiment, std::string_view name) {
  for (const auto& system : experiment.declared.systems) {
    if (system.name == name) return &system;
  }
  return nullptr;
}

// The title is only checked here; the report reads it from the experiment's text. gnuplot truncates
// text at these characters, quoted or not.
void check_title(const TomlSection& system) {
  const toml::node* const node = system.table().get(kTitle);
  if (node == nullptr) return;
  const std::string title = system.text_of(*node, kTitle);
  if (title.empty() || title.find_first_of(",\"\n\r") != std::string::npos) {
    system.wrong(*node, kTitle,
                 "must not be empty, nor hold a comma, a quotation mark or a line end");
  }
}

Located variant_of(const TomlSection& system) {
  const auto text = system.text(kVariantOf);
  if (text && text->empty()) {
    system.wrong(*system.table().get(kVariantOf), kVariantOf, "must not be empty");
  }
  return {text.value_or(""), system.where(kVariantOf)};
}

void read_parameters(const TomlSection& section, std::span<const Parameter> table,
                     SystemSettings& settings) {
  std::vector<std::string_view> known = names_of(table);
  known.insert(known.end(), {kVariantOf, kTitle, kWorkload});
  section.allow_only(known);
  section.read(table, settings.parameters);
  for (const auto& [name, value] : settings.parameters) settings.places[name] = section.where(name);
}

void read_workload_of(const TomlSection& system, const Experiment& experiment,
                      SystemSettings& settings) {
  const auto section = system.section(kWorkload);
  if (!section) return;
  const std::span<const Parameter> table = experiment.declared.parameters;
  section->allow_only(names_of(table));
  section->read(table, settings.workload);
  for (const auto& [name, value] : settings.workload) {
    settings.workload_places[name] = section->where(name);
    for (const Axis& axis : experiment.matrix) {
      if (axis.parameter != name) continue;
      section->wrong(*section->table().get(name), name,
                     fmt::format("is in [matrix] too ({}); keep one", axis.values.front().where));
    }
  }
}

// The system to which a section refers.
const DriverDeclarations::System& system_of(const Experiment& experiment, std::string_view name,
                                            const SystemSettings& settings,
                                            const TomlSection& all) {
  const DriverDeclarations::System* const own = find_system(experiment, name);
  const Located& base = settings.variant_of;
  const auto known = system_names(experiment);
  if (base.text.empty()) {
    if (own != nullptr) return *own;
    throw UsageError(fmt::format("{}: {}; a variant of one needs variant_of = \"...\"",
                                 settings.where, unknown_name("system", name, known)));
  }
  const std::string where = fmt::format("{}: variant_of in [systems.{}]", base.where, name);
  if (own != nullptr) {
    throw UsageError(
        fmt::format("{}: '{}' is a system; give the variant another name", where, name));
  }
  const DriverDeclarations::System* const varied = find_system(experiment, base.text);
  if (varied != nullptr) return *varied;
  if (all.has(base.text)) {
    throw UsageError(fmt::format(
        "{}: '{}' is a variant itself; name a system and repeat the parameters", where, base.text));
  }
  throw UsageError(fmt::format("{}: {}", where, unknown_name("system", base.text, known)));
}

}  // namespace

void read_systems(const TomlSection& systems, Experiment& experiment) {
  for (const auto& [key, node] : systems.table()) {
    const TomlSection section = *systems.section(key.str());
    SystemSettings& settings = experiment.systems[std::string(key.str())];
    settings.where = systems.where(key.str());
    settings.variant_of = variant_of(section);
    check_title(section);
    const auto& system = system_of(experiment, key.str(), settings, systems);
    if (!settings.variant_of.text.empty() && !is_plain_name(key.str())) {
      systems.wrong(node, key.str(),
                    "names rows of the results, so it may hold letters, digits, '-', '_' and '.' "
                    "only");
    }
    read_parameters(section, system.parameters, settings);
    read_workload_of(section, experiment, settings);
  }
}

void check_system_names(const Experiment& experiment) {
  for (const PointSettings& point : expand(experiment)) {
    const Located& system = point.system;
    if (find_system(experiment, system.text) != nullptr) continue;
    if (experiment.systems.contains(system.text)) continue;
    std::vector<std::string_view> names = system_names(experiment);
    for (const auto& [name, settings] : experiment.systems) {
      if (!settings.variant_of.text.empty()) names.push_back(name);
    }
    throw UsageError(
        fmt::format("{}: {}", system.where, unknown_name("system", system.text, names)));
  }
}

}  // namespace perdura::harness
