// What continuity hashing takes as `[systems.continuity]` parameters.
#pragma once

#include <cstdint>
#include <string_view>

#include "services/kv/kv.h"
#include "systems/continuity/layout.h"

namespace perdura::systems::continuity {

inline constexpr std::string_view kName = "continuity";

struct Parameters {
  Geometry geometry;               // buckets, sbuckets, resized_sbuckets, added_percent, resizes
  std::uint32_t queue_depth = 32;  // operations of one session under way at once

  // Throws UsageError if the configuration names others, or if it is impossible.
  static Parameters of(const KvConfig& config);
};

}  // namespace perdura::systems::continuity
