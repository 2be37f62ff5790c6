// perdura list: the names that can be used on the command line and in experiments.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "bench/perdura/commands.h"
#include "bench/perdura/experiment_options.h"
#include "harness/text/printable.h"
#include "harness/text/wrapped.h"
#include "persistence/method.h"
#include "platform/base/json.h"
#include "systems/registry/registry.h"

namespace perdura::harness {
namespace {

struct ListArguments {
  std::string what;  // empty for everything
  bool as_json = false;
};

constexpr std::array<std::pair<const char*, FileKind>, 4> kFiles{{
    {"experiments", FileKind::experiment},
    {"profiles", FileKind::profile},
    {"workloads", FileKind::workload},
    {"sites", FileKind::site},
}};

// An experiment with errors must not prevent the others from being listed.
std::string description_of(const Locations& locations, const std::string& experiment) {
  try {
    return printable(load_experiment(locations.find(FileKind::experiment, {experiment, ""}),
                                     declarations_of(all_drivers()))
                         .description);
  } catch (const std::exception& error) {
    return fmt::format("cannot be read: {}", printable(error.what()));
  }
}

std::vector<std::string> names(const Locations& locations, const std::string& what) {
  std::vector<std::string> found;
  if (what == "systems") {
    for (const auto& system : systems::all_systems()) found.emplace_back(system.info.name);
  }
  if (what == "methods") {
    for (const persistence::Method& method : persistence::methods()) found.push_back(method.name);
  }
  for (const auto& [name, kind] : kFiles) {
    if (what == name) found = locations.names(kind);
  }
  return found;
}

// A line that goes on, where a terminal has no room for it, below its column `indent`.
void print_line(const std::string& line, std::size_t indent) {
  fmt::print("{}\n", wrapped(line, indent, room_of_line()));
}

void print_table(std::string_view heading,
                 const std::vector<std::pair<std::string, std::string>>& rows) {
  fmt::print("\n");
  print_line(std::string(heading), 2);
  std::size_t width = 0;
  for (const auto& [name, text] : rows) width = std::max(width, name.size());
  for (const auto& [name, text] : rows) {
    if (text.empty()) {
      fmt::print("  {}\n", name);
    } else {
      print_line(fmt::format("  {:<{}}  {}", name, width, text), width + 4);
    }
  }
  if (rows.empty()) fmt::print("  none found\n");
}

void print_parameters(std::span<const Parameter> table) {
  for (const Parameter& parameter : table) {
    const std::string usual = parameter.usual.exists()
                                  ? fmt::format("; usually {}", parameter.usual.value().to_text())
                                  : "";
    print_line(fmt::format("      {} ({}{}{}): {}", parameter.name, parameter.type_in_words(),
                           usual, parameter.unit.empty() ? "" : fmt::format(", {}", parameter.unit),
                           parameter.what),
               10);
  }
}

Json parameters_json(std::span<const Parameter> table) {
  Json list = Json::array();
  for (const Parameter& parameter : table) {
    const bool usual = parameter.usual.exists();
    list.push_back({{"name", parameter.name},
                    {"type", parameter.type_in_words()},
                    {"usual", usual ? parameter.usual.value().to_text() : ""},
                    {"unit", parameter.unit},
                    {"what", parameter.what}});
  }
  return list;
}

void print_all(const Locations& locations) {
  using Rows = std::vector<std::pair<std::string, std::string>>;
  for (const services::Service* service : systems::all_services()) {
    print_line(fmt::format("systems of the service {} ({})", service->name(), service->what()), 2);
    for (const services::SystemInfo& system : service->systems()) {
      fmt::print("  {}\n      {}\n", system.name, system.title);
      print_line(fmt::format("      guarantee: {} by its paper: {}", to_string(system.level),
                             system.guarantee),
                 10);
      print_parameters(system.parameters);
    }
  }
  Rows methods;
  for (const persistence::Method& method : persistence::methods()) {
    methods.emplace_back(method.name,
                         fmt::format("{} {}", to_string(method.update), to_string(method.carrier)));
  }
  print_table("methods of remote persistence (perdura crash NAME, perdura advise)", methods);
  Rows experiments;
  for (const std::string& name : locations.names(FileKind::experiment)) {
    experiments.emplace_back(name, description_of(locations, name));
  }
  print_table("experiments (perdura run NAME)", experiments);
  const auto print_names = [&](FileKind kind, std::string_view heading) {
    Rows rows;
    for (const std::string& name : locations.names(kind)) rows.emplace_back(name, "");
    print_table(heading, rows);
  };
  print_names(FileKind::profile, "profiles (--profile NAME)");
  print_names(FileKind::workload, "workloads");
  print_names(FileKind::site, "sites (--site NAME)");
}

Json systems_json() {
  Json list = Json::array();
  for (const auto& [service, system] : systems::all_systems()) {
    list.push_back({{"name", system.name},
                    {"service", service->name()},
                    {"title", system.title},
                    {"level", to_string(system.level)},
                    {"guarantee", system.guarantee},
                    {"parameters", parameters_json(system.parameters)}});
  }
  return list;
}

Json methods_json() {
  Json list = Json::array();
  for (const persistence::Method& method : persistence::methods()) {
    list.push_back({{"name", method.name},
                    {"update", to_string(method.update)},
                    {"carrier", to_string(method.carrier)}});
  }
  return list;
}

Json files_json(const Locations& locations, FileKind kind) {
  Json list = Json::array();
  for (const std::string& name : locations.names(kind)) {
    Json file{{"name", name}, {"file", locations.find(kind, {name, ""}).string()}};
    if (kind == FileKind::experiment) file["description"] = description_of(locations, name);
    list.push_back(std::move(file));
  }
  return list;
}

void print_json(const Locations& locations, const std::string& what) {
  Json all;
  if (what.empty() || what == "systems") all["systems"] = systems_json();
  if (what.empty() || what == "methods") all["methods"] = methods_json();
  for (const auto& [name, kind] : kFiles) {
    if (what.empty() || what == name) all[name] = files_json(locations, kind);
  }
  fmt::print("{}\n", all.dump(2));
}

ExitCode list(const ListArguments& arguments, const CommandContext& context) {
  if (!context.ranks.is_root()) return ExitCode::done;
  if (arguments.as_json) {
    print_json(context.locations, arguments.what);
  } else if (arguments.what.empty()) {
    print_all(context.locations);
  } else {
    for (const std::string& name : names(context.locations, arguments.what)) {
      fmt::print("{}\n", name);
    }
  }
  return ExitCode::done;
}

}  // namespace

void add_list(Command& program, CommandContext& context) {
  const auto arguments = std::make_shared<ListArguments>();
  Command& command = program.subcommand(
      "list", "Lists systems, methods, experiments, profiles, workloads and sites");
  command.option("what", arguments->what, "Only these, by name, one per line")
      .one_of({"systems", "methods", "experiments", "profiles", "workloads", "sites"});
  command.flag("--json", arguments->as_json, "Writes JSON");
  command.does([arguments, &context] { return list(*arguments, context); });
}

}  // namespace perdura::harness
