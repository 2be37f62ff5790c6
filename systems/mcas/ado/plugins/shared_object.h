// Examines the symbols that a shared object exports, without loading it: that would execute its
// code.
#pragma once

#include <string>
#include <string_view>

namespace perdura::systems::mcas::ado {

// Returns why the file is not a shared object for this machine that defines the symbol, as a phrase
// that follows its name ("is no shared object"); empty if it is one.
std::string why_not_exported(const std::string& path, std::string_view symbol);

}  // namespace perdura::systems::mcas::ado
