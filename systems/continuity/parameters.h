// The parameters of continuity hashing, `[systems.continuity]`.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "platform/base/parameter.h"
#include "services/kv/kv.h"
#include "systems/continuity/layout.h"

namespace perdura::systems::continuity {

inline constexpr std::string_view kName = "continuity";

inline constexpr std::array kParameterTable = std::to_array<Parameter>({
    {.name = "buckets",
     .type = Count{2, std::uint64_t{1} << 32},
     .what = "buckets of the first table, an even number; else as many as the records need"},
    {.name = "sbuckets",
     .type = Count{1, kMaxSBuckets},
     .usual = 3,
     .what = "SBuckets that a pair of buckets shares"},
    {.name = "resized_sbuckets",
     .type = Count{1, kMaxSBuckets},
     .what = "the same in tables after a resize; else as many"},
    {.name = "added_percent",
     .type = Count{0, 100},
     .usual = 10,
     .what = "share of the pairs that may have added SBuckets"},
    {.name = "resizes",
     .type = Count{0, kMaxResizes},
     .usual = 1,
     .what = "how often the table may be doubled"},
    {.name = "queue_depth",
     .type = Count{1, 4096},
     .usual = 32,
     .what = "operations of one session under way at once"},
});

struct Parameters {
  static constexpr std::span<const Parameter> kTable = kParameterTable;

  Geometry geometry;  // buckets, sbuckets, resized_sbuckets, added_percent, resizes
  std::uint32_t queue_depth = 0;

  // Throws UsageError if the configuration has an unknown parameter or is impossible.
  static Parameters of(const kv::KvConfig& config);
};

}  // namespace perdura::systems::continuity
