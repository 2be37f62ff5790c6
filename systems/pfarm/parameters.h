// What P-FaRM-KV takes as `[systems.p-farm-kv]` parameters.
#pragma once

#include <cstdint>
#include <string_view>

#include "services/kv/kv.h"
#include "systems/pfarm/layout.h"

namespace perdura::systems::pfarm {

inline constexpr std::string_view kName = "p-farm-kv";

struct Parameters {
  Geometry geometry;               // buckets, overflow_percent, resizes; logs for all workers
  std::uint32_t queue_depth = 32;  // operations of one session under way at once

  // Throws UsageError if the configuration names others, or if it is impossible.
  static Parameters of(const KvConfig& config);
};

}  // namespace perdura::systems::pfarm
