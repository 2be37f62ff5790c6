// The parameters that `[systems.NAME]` of an experiment may set for a mode of Mojim.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "platform/base/parameter.h"
#include "services/memory/memory.h"
#include "systems/mojim/mode.h"

namespace perdura::systems::mojim {

inline constexpr std::array kParameters = std::to_array<Parameter>({
    {.name = "connections",
     .type = Count{1, 64},
     .usual = 1,
     .what = "connections to the mirror, each with a log and a thread that polls (section 3.2.1)"},
    {.name = "log_slots",
     .type = Count{2, std::uint64_t{1} << 20},
     .usual = 4096,
     .what = "requests that a log holds"},
    {.name = "slot_bytes",
     .type = Count{64, std::uint64_t{1} << 20},
     .usual = 4096,
     .unit = "bytes",
     .what = "data of a request; larger ranges are split"},
    {.name = "checkpoint_thresh",
     .type = Count{1, std::uint64_t{1} << 20},
     .usual = 1,
     .what = "requests after which the mirror takes a checkpoint (CHECKPOINT_THRESH)"},
    {.name = "secondary_tier_thresh",
     .type = Count{1, std::uint64_t{1} << 20},
     .usual = 40960,
     .unit = "KiB",
     .what = "data that the backups may lack before the primary waits (SECONDARY_TIER_THRESH)"},
    {.name = "resends",
     .type = Count{0, 1000},
     .usual = 3,
     .what = "how often a sync point is sent again before its copy counts as lost"},
    {.name = "timeout_us",
     .type = Count{1, 1'000'000'000},
     .usual = 500'000,
     .unit = "us",
     .what = "after which a copy that does not answer has failed"},
});

struct Parameters {
  std::uint32_t connections = 0;
  std::uint32_t log_slots = 0;  // per log
  std::uint32_t slot_bytes = 0;
  std::uint64_t checkpoint_thresh = 0;
  Bytes secondary_tier_thresh = 0;
  std::uint32_t resends = 0;
  Picoseconds timeout{};

  // Throws UsageError if the configuration has other parameters, or is impossible.
  static Parameters of(const services::MemoryConfig& config, const Mode& mode);
};

}  // namespace perdura::systems::mojim
