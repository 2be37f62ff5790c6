// The parameters of level hashing, `[systems.level]`.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "platform/base/parameter.h"
#include "services/kv/kv.h"
#include "systems/level/layout.h"

namespace perdura::systems::level {

inline constexpr std::string_view kName = "level";

inline constexpr std::array kParameterTable = std::to_array<Parameter>({
    {.name = "top_buckets",
     .type = Count{4, std::uint64_t{1} << 32},
     .what = "a multiple of 4; else as many as the records need"},
    {.name = "resizes",
     .type = Count{0, kMaxResizes},
     .usual = 1,
     .what = "how often a level may be added"},
    {.name = "queue_depth",
     .type = Count{1, 4096},
     .usual = 32,
     .what = "operations of one session under way at once"},
});

struct Parameters {
  static constexpr std::span<const Parameter> kTable = kParameterTable;

  Geometry geometry;  // top_buckets, resizes
  std::uint32_t queue_depth = 0;

  // Throws UsageError if the configuration has an unknown parameter or is impossible.
  static Parameters of(const kv::KvConfig& config);
};

}  // namespace perdura::systems::level
