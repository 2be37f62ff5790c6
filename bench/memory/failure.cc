#include "bench/memory/failure.h"

#include <algorithm>

namespace perdura::bench {

Failure failure_of(const harness::PointSettings& settings) {
  const auto found =
      std::find(kFailureWords.begin(), kFailureWords.end(), settings.text("failure"));
  return static_cast<Failure>(found - kFailureWords.begin());
}

std::size_t failing(Failure failure) {
  switch (failure) {
    case Failure::none:
    case Failure::primary_restarts:
      return 0;
    case Failure::mirror_restarts:
    case Failure::mirror_replaced:
    case Failure::mirror_lost:
      return 1;
    case Failure::backup_restarts:
    case Failure::backup_replaced:
      return 2;
  }
  return 0;
}

bool receives_region(Failure failure) {
  return failure == Failure::primary_restarts || failure == Failure::mirror_replaced ||
         failure == Failure::backup_replaced;
}

}  // namespace perdura::bench
