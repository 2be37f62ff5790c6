// What several tests of probes use.
#pragma once

#include "bench/probe/access.h"

namespace perdura::bench {

constexpr Pattern kPatterns[] = {Pattern::sequential, Pattern::random};

inline double ns(Picoseconds time) { return static_cast<double>(time.count()) * 1e-3; }

}  // namespace perdura::bench
