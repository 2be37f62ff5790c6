// The gamma distribution, from which Filebench draws sizes of files and shapes of trees.
#pragma once

#include "platform/base/random.h"

namespace perdura::bench {

// Draws from a gamma distribution; `shape` must be at least 1. The digits are the same on every
// machine (bench/ycsb/portable_math.h). Marsaglia and Tsang, ACM TOMS 26(3), 2000.
double draw_gamma(Random& random, double shape, double mean);

}  // namespace perdura::bench
