// Declarations of drivers about the experiments that they run; experiments are read and checked
// against these declarations alone.
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
    std::span<const Parameter> parameters;  // set in [systems.NAME]
    std::string_view title{};               // as shown to people; empty: same as the name
  };

  std::string_view name;
  std::span<const Parameter> parameters;  // parameters of a point, in [workload] and [matrix]
  std::vector<std::string> roles;         // roles of nodes, in [roles]
  std::vector<System> systems;
};

struct Declarations {
  std::vector<DriverDeclarations> drivers;
  schema::Schema columns;  // columns of points.csv, for all drivers; figures may name these
};

// The parameters that the harness itself declares for every point: the system that it runs, and how
// threads wait for completions.
std::span<const Parameter> common_parameters();

}  // namespace perdura::harness
