// The parameters of P-FaRM-KV, `[systems.p-farm-kv]`.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "platform/base/parameter.h"
#include "services/kv/kv.h"
#include "systems/pfarm/layout.h"

namespace perdura::systems::pfarm {

inline constexpr std::string_view kName = "p-farm-kv";

inline constexpr std::array kParameterTable = std::to_array<Parameter>({
    {.name = "buckets",
     .type = Count{1, std::uint64_t{1} << 32},
     .what = "buckets of the first table; else as many as the records need"},
    {.name = "overflow_percent",
     .type = Count{0, 100},
     .usual = 5,
     .what = "overflow blocks for a hundred buckets"},
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

  Geometry geometry;  // buckets, overflow_percent, resizes; logs for all workers
  std::uint32_t queue_depth = 0;

  // Throws UsageError if the configuration has an unknown parameter or is impossible.
  static Parameters of(const kv::KvConfig& config);
};

}  // namespace perdura::systems::pfarm
