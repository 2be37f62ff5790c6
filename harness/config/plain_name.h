// Names that a user gives to folders and rows of results.
#pragma once

#include <algorithm>
#include <string_view>

namespace perdura::harness {

// True if the name can be used as a file name.
inline bool is_plain_name(std::string_view name) {
  return !name.empty() && name.front() != '.' && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

}  // namespace perdura::harness
