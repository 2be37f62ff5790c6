// Programs and libraries that were built or installed with this program.
#pragma once

#include <filesystem>
#include <string_view>

namespace perdura::harness {

// The path of the file of that name: beside this program, or in lib/perdura of its installation
// prefix. Throws UsageError, with a message that ends in `otherwise`, if it is at neither place.
std::filesystem::path companion(std::string_view name, std::string_view otherwise);

}  // namespace perdura::harness
