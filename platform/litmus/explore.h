// Runs a litmus test on `sim` in different orders of events: those that the fabric and the CPUs
// allow, whatever the times (SimPlatform::relax).
#pragma once

#include <cstdint>

#include "platform/litmus/runner.h"
#include "platform/sim/kernel/profile.h"

namespace perdura::litmus {

struct Explored {
  Results results;
  std::uint64_t runs = 0;
  std::uint64_t states = 0;  // distinct ones
};

// All orders, depth first. A run ends where it reaches a state of another run: from there on both
// could only continue in the same ways.
Explored explore(const Litmus& litmus, const sim::Profile& profile);

// Random orders, for tests with too many of them.
Results sample(const Litmus& litmus, const sim::Profile& profile, std::uint64_t times,
               std::uint64_t seed);

}  // namespace perdura::litmus
