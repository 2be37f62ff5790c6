// Runs a litmus test on `sim` in orders of events that the fabric and the CPUs allow, whatever the
// times (SimPlatform::relax).
#pragma once

#include <cstdint>

#include "platform/litmus/runner.h"
#include "platform/sim/kernel/profile.h"

namespace perdura::litmus {

struct Explored {
  Results results;
  std::uint64_t runs = 0;
  std::uint64_t states = 0;  // that differ from each other
};

// All orders, depth first. A run ends where it comes to a state of another: from there on both
// could only go on alike.
Explored explore(const Litmus& litmus, const sim::Profile& profile);

// Random orders, for tests of which there are too many.
Results sample(const Litmus& litmus, const sim::Profile& profile, std::uint64_t times,
               std::uint64_t seed);

}  // namespace perdura::litmus
