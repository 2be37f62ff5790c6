#pragma once

#include <string>
#include <string_view>

namespace perdura::report {

/// The text with & < > " ' escaped, for element content and attribute values.
std::string escaped(std::string_view text);

}  // namespace perdura::report
