// perdura list: what can be named on the command line and in experiments.
#include <fmt/format.h>

#include <algorithm>

#include "bench/perdura/commands.h"
#include "systems/kv.h"
#include "systems/persistence/method.h"

namespace perdura::harness {
namespace {

void print_names(const Locations& locations, FileKind kind, std::string_view heading) {
  fmt::print("\n{}\n", heading);
  const auto names = locations.names(kind);
  for (const std::string& name : names) fmt::print("  {}\n", name);
  if (names.empty()) fmt::print("  none found\n");
}

void print_experiments(const Locations& locations) {
  fmt::print("\nexperiments (perdura run NAME)\n");
  const auto names = locations.names(FileKind::experiment);
  std::size_t width = 0;
  for (const std::string& name : names) width = std::max(width, name.size());
  for (const std::string& name : names) {
    const auto file = locations.find(FileKind::experiment, {name, ""});
    // One broken file must not hide the others.
    std::string description;
    try {
      description = load_experiment(file).description;
    } catch (const std::exception& error) {
      description = fmt::format("cannot be read: {}", error.what());
    }
    fmt::print("  {:<{}}  {}\n", name, width, description);
  }
  if (names.empty()) fmt::print("  none found\n");
}

ExitCode list(const CommandContext& context) {
  if (!context.ranks.is_root()) return ExitCode::done;
  fmt::print("systems\n");
  for (const systems::KvSystem& system : systems::kv_systems()) {
    fmt::print("  {}\n      {}\n      guarantee: {} by its paper: {}\n", system.name, system.title,
               to_string(system.level), system.guarantee);
  }
  fmt::print("\nmethods of remote persistence (perdura crash NAME, perdura advise)\n");
  std::size_t width = 0;
  for (const persistence::Method& method : persistence::methods()) {
    width = std::max(width, method.name.size());
  }
  for (const persistence::Method& method : persistence::methods()) {
    fmt::print("  {:<{}}  {} {}\n", method.name, width, to_string(method.update),
               to_string(method.carrier));
  }
  print_experiments(context.locations);
  print_names(context.locations, FileKind::profile, "profiles (--profile NAME)");
  print_names(context.locations, FileKind::workload, "workloads");
  print_names(context.locations, FileKind::site, "sites (--site NAME)");
  return ExitCode::done;
}

}  // namespace

void add_list(CLI::App& app, CommandContext& context, Action& action) {
  CLI::App* command = app.add_subcommand(
      "list", "Lists systems, methods, experiments, profiles, workloads and sites");
  command->callback([&context, &action] { action = [&context] { return list(context); }; });
}

}  // namespace perdura::harness
