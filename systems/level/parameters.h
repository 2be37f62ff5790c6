// What level hashing takes as `[systems.level]` parameters.
#pragma once

#include <cstdint>
#include <string_view>

#include "services/kv/kv.h"
#include "systems/level/layout.h"

namespace perdura::systems::level {

inline constexpr std::string_view kName = "level";

struct Parameters {
  Geometry geometry;               // top_buckets, resizes
  std::uint32_t queue_depth = 32;  // operations of one session under way at once

  // Throws UsageError if the configuration names others, or if it is impossible.
  static Parameters of(const KvConfig& config);
};

}  // namespace perdura::systems::level
