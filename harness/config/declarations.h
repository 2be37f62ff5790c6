// What drivers declare of the experiments that they run: by this alone an experiment is read and
// checked.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/schema/schema.h"
#include "platform/base/parameter.h"

namespace perdura::harness {

struct DriverDeclarations {
  struct System {
    std::string_view name;
    std::span<const Parameter> parameters;  // of [systems.NAME]
  };

  std::string_view name;
  std::span<const Parameter> parameters;  // of a point: [workload] and [matrix]
  std::vector<std::string> roles;         // of nodes: [roles]
  std::vector<System> systems;
};

struct Declarations {
  std::vector<DriverDeclarations> drivers;
  report::Schema columns;  // of points.csv, of all drivers: what figures may name
};

// What the harness itself knows of every point, and so no driver declares: which system it runs,
// and how threads wait for completions.
std::span<const Parameter> common_parameters();

}  // namespace perdura::harness
