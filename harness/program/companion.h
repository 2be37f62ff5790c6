// Programs and libraries that were built or installed with this program.
#pragma once

#include <filesystem>
#include <string_view>

namespace perdura::harness {

// Where the file of that name is: beside this program, or in lib/perdura of the prefix that it was
// installed to. Throws UsageError, which ends with `otherwise`, if it is at neither place.
std::filesystem::path companion(std::string_view name, std::string_view otherwise);

}  // namespace perdura::harness
