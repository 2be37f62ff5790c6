#pragma once

#include <span>
#include <string_view>

namespace perdura::report {

/// What the column `guarantee` may say, the weakest first (docs/guarantees.md).
std::span<const std::string_view> guarantee_words();

}  // namespace perdura::report
