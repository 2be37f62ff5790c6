#pragma once

#include <filesystem>
#include <string>

namespace perdura::schema {

/// Advice about a damaged file of a result folder. If its sweep is incomplete, the journal has
/// everything that the tables are made of (docs/results.md).
std::string advice_on_damaged(const std::filesystem::path& file);

}  // namespace perdura::schema
