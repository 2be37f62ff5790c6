// Changes that the command line makes to an experiment's file.
#pragma once

#include <string>
#include <string_view>

namespace perdura::harness {

// One value to replace or to add.
struct Override {
  std::string key;    // dotted, as in TOML: workload.operations
  std::string value;  // in TOML's syntax: 500, "event", [1, 2]
  std::string label;  // what the user typed, for messages: --set workload.operations=500
};

// Splits "key=value"; the label becomes "--set key=value". Throws UsageError if there is no '='.
Override parse_override(std::string_view argument);

}  // namespace perdura::harness
