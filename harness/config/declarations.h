// What drivers declare about the experiments that they run. Experiments are read and checked by
// these declarations alone.
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
    std::string_view title{};               // as people read it; empty: as the name is written
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

// The parameters that every point has and that the harness itself declares: the system that it
// runs, and how threads wait for completions.
std::span<const Parameter> common_parameters();

}  // namespace perdura::harness
