// What a file of a shared object exports, without loading it: that would execute code of it.
#pragma once

#include <string>
#include <string_view>

namespace perdura::systems::mcas::ado {

// Why the file is no shared object for this machine that defines the symbol, as a phrase that
// follows its name ("is no shared object"); empty if it is one.
std::string why_not_exported(const std::string& path, std::string_view symbol);

}  // namespace perdura::systems::mcas::ado
