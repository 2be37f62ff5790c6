#pragma once

#include <filesystem>
#include <string>

namespace perdura::report {

/// What to do about a file of a result folder that is damaged: of a sweep that is not complete, the
/// journal has everything that its tables are made of (docs/results.md).
std::string advice_on_damaged(const std::filesystem::path& file);

}  // namespace perdura::report
