// Opens the plugins that a configuration names.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "platform/child_process.h"
#include "systems/mcas/ado/process.h"

namespace perdura::systems::mcas::ado {

// Each name is that of a built-in plugin ("passthru", "versioning", "aggregate", "replicate") or
// the path of a shared object, which contains a '/'. An argument may follow, as in "NAME:ARGUMENT";
// for versioning it is the number of versions kept. Throws UsageError if there is no such plugin,
// or it cannot be loaded, has another version of the interface, or does not take the argument.
//
// Shared objects use functions and variables of the program that loads them, which must export them
// (ENABLE_EXPORTS in CMake). They stay loaded.
Plugins open_plugins(const std::vector<std::string>& names);

// Checks the names and arguments of built-in plugins, without loading shared objects. Throws
// UsageError if one is invalid.
void check_plugins(const std::vector<std::string>& names);
// Throws UsageError unless each shared object among them is a file of this host that exports a
// plugin, and that an isolated process, whose user owns nothing, can read. None of its code is
// executed, so its version and its dependencies are checked only when it is loaded.
void check_plugin_files(const std::vector<std::string>& names, Isolation isolation);
// True if "replicate" is one of them.
bool names_replicate(const std::vector<std::string>& names);
// The path of the shared object, if the name is that of one.
std::optional<std::string> path_of(const std::string& name);

}  // namespace perdura::systems::mcas::ado
