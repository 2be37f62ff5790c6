#include "systems/mcas/ado/plugins/plugins.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "platform/base/error.h"
#include "systems/mcas/ado/plugins/aggregate.h"
#include "systems/mcas/ado/plugins/passthru.h"
#include "systems/mcas/ado/plugins/replicate.h"
#include "systems/mcas/ado/plugins/shared_object.h"
#include "systems/mcas/ado/plugins/versioning.h"

namespace perdura::systems::mcas::ado {

namespace {

constexpr std::string_view kReplicate = "replicate";

std::string without_argument(const std::string& text) { return text.substr(0, text.find(':')); }

// Returns the path that keeps a user who owns nothing from reading a file: the file itself, or a
// folder on the way to it; empty if nothing does.
std::string what_is_closed(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path at = fs::canonical(path, ignored);
  for (fs::perms needed = fs::perms::others_read; !at.empty(); needed = fs::perms::others_exec) {
    if ((fs::status(at, ignored).permissions() & needed) == fs::perms::none) return at.string();
    if (at == at.root_path()) break;
    at = at.parent_path();
  }
  return "";
}

std::unique_ptr<Plugin> load(const std::string& path, const std::string& argument) {
  void* const object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) {
    throw UsageError(fmt::format("plugin '{}' cannot be loaded: {}", path, dlerror()));
  }
  const auto* const entry = static_cast<const PluginEntry*>(dlsym(object, kPluginSymbol));
  if (entry == nullptr) {
    throw UsageError(
        fmt::format("'{}' is no plugin: it does not export '{}'", path, kPluginSymbol));
  }
  if (entry->interface_version != kPluginInterface) {
    throw UsageError(
        fmt::format("plugin '{}' was built for version {} of the interface, this program has "
                    "version {}; build it anew",
                    path, entry->interface_version, kPluginInterface));
  }
  std::unique_ptr<Plugin> plugin(entry->create(argument.c_str()));
  if (plugin) return plugin;
  throw UsageError(fmt::format("plugin '{}' does not take the argument '{}'", path, argument));
}

std::unique_ptr<Plugin> versioning(const std::string& argument) {
  Versioning::Settings settings;
  const char* const end = argument.data() + argument.size();
  const auto [stop, error] = std::from_chars(argument.data(), end, settings.versions);
  const bool number = error == std::errc() && stop == end && settings.versions > 0;
  if (argument.empty() || number) return std::make_unique<Versioning>(settings);
  throw UsageError(
      fmt::format("plugin 'versioning' takes how many versions it keeps, not '{}'", argument));
}

std::unique_ptr<Plugin> taking_none(std::string_view name, std::unique_ptr<Plugin> plugin,
                                    const std::string& argument) {
  if (argument.empty()) return plugin;
  throw UsageError(fmt::format("plugin '{}' takes no argument; '{}' was given", name, argument));
}

std::unique_ptr<Plugin> open(const std::string& text) {
  const std::string name = without_argument(text);
  const std::string argument = name == text ? "" : text.substr(name.size() + 1);
  if (path_of(text)) return load(name, argument);
  if (name == "versioning") return versioning(argument);
  if (name == "passthru") return taking_none(name, std::make_unique<Passthru>(), argument);
  if (name == "aggregate") return taking_none(name, std::make_unique<Aggregate>(), argument);
  if (name == kReplicate) return taking_none(name, std::make_unique<Replicate>(), argument);
  throw UsageError(
      fmt::format("no plugin '{}'; there are passthru, versioning, aggregate and replicate, and "
                  "shared objects by their path, with a '/'",
                  name));
}

}  // namespace

std::optional<std::string> path_of(const std::string& text) {
  std::string name = without_argument(text);
  return name.find('/') == std::string::npos ? std::nullopt : std::optional(std::move(name));
}

Plugins open_plugins(const std::vector<std::string>& names) {
  Plugins plugins;
  for (const std::string& name : names) plugins.push_back(open(name));
  return plugins;
}

bool names_replicate(const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), kReplicate) != names.end();
}

void check_plugin_files(const std::vector<std::string>& names, Isolation isolation) {
  for (const std::string& name : names) {
    const std::optional<std::string> path = path_of(name);
    if (!path) continue;
    const std::string problem = why_not_exported(*path, kPluginSymbol);
    if (!problem.empty()) throw UsageError(fmt::format("plugin '{}' {}", *path, problem));
    const std::string closed = isolation == Isolation::full ? what_is_closed(*path) : "";
    if (closed.empty()) continue;
    throw UsageError(
        fmt::format("plugin '{}' cannot be read by an isolated process, which has a user of its "
                    "own: '{}' is closed to others; chmod o+rX it",
                    *path, closed));
  }
}

void check_plugins(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (!path_of(name)) open(name);
  }
}

}  // namespace perdura::systems::mcas::ado
