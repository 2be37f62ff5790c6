// perdura list: the names that can be used on the command line and in experiments.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "harness/text/printable.h"
#include "harness/text/whole_file.h"
#include "harness/text/wrapped.h"
#include "methods/method.h"
#include "platform/base/error.h"
#include "platform/base/json.h"
#include "platform/base/path_kind.h"
#include "program/commands.h"
#include "program/experiment_options.h"
#include "systems/registry/registry.h"

namespace perdura::program {
namespace {

struct ListArguments {
  std::string what;  // empty for everything
  std::string name;  // empty for all of them
  bool as_json = false;
};

constexpr std::array<std::pair<const char*, harness::FileKind>, 4> kFiles{{
    {"experiments", harness::FileKind::experiment},
    {"profiles", harness::FileKind::profile},
    {"workloads", harness::FileKind::workload},
    {"sites", harness::FileKind::site},
}};

// An experiment with errors must not prevent the others from being listed.
std::string description_of(const harness::Locations& locations, const std::string& experiment) {
  try {
    return printable(
        harness::load_experiment(locations.find(harness::FileKind::experiment, {experiment, ""}),
                                 harness::declarations_of(all_drivers()))
            .description);
  } catch (const std::exception& error) {
    return fmt::format("cannot be read: {}", printable(error.what()));
  }
}

std::vector<std::string> names(const harness::Locations& locations, const std::string& what) {
  std::vector<std::string> found;
  if (what == "systems") {
    for (const auto& system : systems::all_systems()) found.emplace_back(system.info.name);
  }
  if (what == "methods") {
    for (const methods::Method& method : methods::methods()) found.push_back(method.name);
  }
  for (const auto& [name, kind] : kFiles) {
    if (what == name) found = locations.names(kind);
  }
  return found;
}

// A line that goes on, where a terminal has no room for it, below its column `indent`.
void print_line(const std::string& line, std::size_t indent) {
  fmt::print("{}\n", harness::wrapped(line, indent, harness::room_of_line()));
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
    std::string usual = parameter.usual.exists() ? parameter.usual.value().to_text() : "";
    if (!usual.empty()) usual.insert(0, "; usually ");
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

// Some drivers have systems that no service has, whose failures are not explored. The methods of remote
// persistence, which have no title, are listed by themselves.
void print_systems_of_drivers() {
  for (const harness::Driver* const driver : all_drivers()) {
    bool is_first = true;
    for (const harness::DriverDeclarations::System& system : driver->systems()) {
      if (system.title.empty() || systems::find_system(system.name)) continue;
      if (is_first) print_line(fmt::format("systems of the driver {} only", driver->name()), 2);
      is_first = false;
      fmt::print("  {}\n      {}\n", system.name, system.title);
      print_parameters(system.parameters);
    }
  }
}

void print_all(const harness::Locations& locations) {
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
  print_systems_of_drivers();
  Rows methods;
  for (const methods::Method& method : methods::methods()) {
    methods.emplace_back(method.name,
                         fmt::format("{} {}", to_string(method.update), to_string(method.carrier)));
  }
  print_table("methods of remote persistence (perdura crash NAME, perdura advise)", methods);
  Rows experiments;
  for (const std::string& name : locations.names(harness::FileKind::experiment)) {
    experiments.emplace_back(name, description_of(locations, name));
  }
  print_table("experiments (perdura run NAME)", experiments);
  const auto print_names = [&](harness::FileKind kind, std::string_view heading) {
    Rows rows;
    for (const std::string& name : locations.names(kind)) rows.emplace_back(name, "");
    print_table(heading, rows);
  };
  print_names(harness::FileKind::profile, "profiles (--profile NAME)");
  print_names(harness::FileKind::workload, "workloads");
  print_names(harness::FileKind::site, "sites (--site NAME)");
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
  for (const methods::Method& method : methods::methods()) {
    list.push_back({{"name", method.name},
                    {"update", to_string(method.update)},
                    {"carrier", to_string(method.carrier)}});
  }
  return list;
}

Json files_json(const harness::Locations& locations, harness::FileKind kind) {
  Json list = Json::array();
  for (const std::string& name : locations.names(kind)) {
    Json file{{"name", name}, {"file", locations.find(kind, {name, ""}).string()}};
    if (kind == harness::FileKind::experiment)
      file["description"] = description_of(locations, name);
    list.push_back(std::move(file));
  }
  return list;
}

void print_json(const harness::Locations& locations, const std::string& what) {
  Json all;
  if (what.empty() || what == "systems") all["systems"] = systems_json();
  if (what.empty() || what == "methods") all["methods"] = methods_json();
  for (const auto& [name, kind] : kFiles) {
    if (what.empty() || what == name) all[name] = files_json(locations, kind);
  }
  fmt::print("{}\n", all.dump(2));
}

// The text of a method or a file, from which a user may make one of his own.
void print_text(const harness::Locations& locations, const ListArguments& arguments) {
  if (arguments.what == "methods") {
    fmt::print("{}", to_text(methods::find_method(arguments.name)));
    return;
  }
  for (const auto& [name, kind] : kFiles) {
    if (arguments.what != name) continue;
    const std::filesystem::path file = locations.find(kind, {arguments.name, "list"});
    const auto text = harness::read_whole(file);
    if (!text) throw UsageError(fmt::format("list: {}: {}", file.string(), not_a_file(file)));
    fmt::print("{}", *text);
    return;
  }
  throw UsageError("list: a system has no text; 'perdura list' describes all of them");
}

harness::ExitCode list(const ListArguments& arguments, const CommandContext& context) {
  if (!context.ranks.is_root()) return harness::ExitCode::done;
  if (!arguments.name.empty()) {
    print_text(context.locations, arguments);
  } else if (arguments.as_json) {
    print_json(context.locations, arguments.what);
  } else if (arguments.what.empty()) {
    print_all(context.locations);
  } else {
    for (const std::string& name : names(context.locations, arguments.what)) {
      fmt::print("{}\n", name);
    }
  }
  return harness::ExitCode::done;
}

}  // namespace

void add_list(harness::Command& program, CommandContext& context) {
  const auto arguments = std::make_shared<ListArguments>();
  harness::Command& command = program.subcommand(
      "list", "Lists systems, methods, experiments, profiles, workloads and sites");
  command.option("what", arguments->what, "Only these, by name, one per line")
      .one_of({"systems", "methods", "experiments", "profiles", "workloads", "sites"});
  const harness::Option name =
      command.option("name", arguments->name,
                     "Prints the one of this name as a file: the steps of a method, an experiment");
  command.flag("--json", arguments->as_json, "Writes JSON").excludes(name);
  command.does([arguments, &context] { return list(*arguments, context); });
}

}  // namespace perdura::program
