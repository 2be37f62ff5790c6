// The gamma distribution, by which Filebench draws sizes of files and shapes of trees.
#pragma once

#include "platform/base/random.h"

namespace perdura::bench {

// Draws with a shape of at least 1; the mean is `mean`. The same digits on every machine
// (bench/ycsb/portable_math.h). Marsaglia and Tsang, ACM TOMS 26(3), 2000.
double draw_gamma(workload::Random& random, double shape, double mean);

}  // namespace perdura::bench
