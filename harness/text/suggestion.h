// What a name that is unknown may have been meant to be.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace perdura::harness {

// The known name that is nearest: a few letters are missing, too many, wrong or swapped, or it
// begins so. Empty if none is near.
std::string_view nearest(std::string_view name, std::span<const std::string_view> known);

// "unknown key 'clinets' in [workload] (did you mean 'clients'?); known are: records, clients".
std::string unknown_name(std::string_view noun, std::string_view name,
                         std::span<const std::string_view> known, std::string_view where = "");
std::string unknown_name(std::string_view noun, std::string_view name,
                         std::span<const std::string> known);

}  // namespace perdura::harness
