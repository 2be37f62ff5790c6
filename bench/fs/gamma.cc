#include "bench/fs/gamma.h"

#include <cmath>

#include "bench/ycsb/portable_math.h"

namespace perdura::bench {
namespace {

// Draws a standard normal number by the polar method. sqrt() is exact by IEEE 754.
double draw_normal(Random& random) {
  while (true) {
    const double x = 2 * random.uniform_unit() - 1;
    const double y = 2 * random.uniform_unit() - 1;
    const double square = x * x + y * y;
    if (square >= 1 || square == 0) continue;
    return x * std::sqrt(-2 * ycsb::portable_log(square) / square);
  }
}

}  // namespace

double draw_gamma(Random& random, double shape, double mean) {
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double normal = draw_normal(random);
    const double root = 1 + c * normal;
    if (root <= 0) continue;
    const double cube = root * root * root;
    const double uniform = random.uniform_unit();
    if (uniform == 0) continue;
    if (ycsb::portable_log(uniform) <
        normal * normal / 2 + d - d * cube + d * ycsb::portable_log(cube)) {
      return d * cube * mean / shape;
    }
  }
}

}  // namespace perdura::bench
