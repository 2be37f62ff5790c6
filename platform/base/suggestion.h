// Suggestions for unknown names.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace perdura {

// The closest known name: one that differs in a few missing, additional, wrong or swapped letters,
// or that begins with `name`. Empty if none is close.
std::string_view nearest(std::string_view name, std::span<const std::string_view> known);

// The first of the names that is not known, but close to a known one; if there is none, the first
// that is not known. Null if all are known. A mistyped name often makes others unknown, too, such as
// those that only have a meaning together with it; so it is the one to report.
const std::string_view* mistyped(std::span<const std::string_view> names,
                                 std::span<const std::string_view> known);

// "unknown key 'clinets' in [workload] (did you mean 'clients'?); known are: records, clients".
std::string unknown_name(std::string_view noun, std::string_view name,
                         std::span<const std::string_view> known, std::string_view where = "");
std::string unknown_name(std::string_view noun, std::string_view name,
                         std::span<const std::string> known);

}  // namespace perdura
