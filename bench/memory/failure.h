// Failures within the measured interval of a point ("Mojim", section 3.2.3): of a process, whose PM
// stays, or of a node, for which an empty one takes over.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "harness/config/experiment.h"
#include "services/metric.h"

namespace perdura::bench {

enum class Failure : std::uint8_t {
  none,
  primary_restarts,  // and loads the region
  mirror_restarts,   // and replays its logs
  mirror_replaced,   // by an empty node, which is given the region
  mirror_lost,       // not replaced: the primary flushes what only the mirror held durably
  backup_restarts,   // the first one after the mirror
  backup_replaced,
};
inline constexpr std::array<std::string_view, 7> kFailureWords{
    "none",        "primary-restarts", "mirror-restarts", "mirror-replaced",
    "mirror-lost", "backup-restarts",  "backup-replaced"};

Failure failure_of(const harness::PointSettings& settings);

// The index in MemoryConfig::nodes of the node that fails. Precondition: not Failure::none.
std::size_t failing(Failure failure);
// True if the node that comes back is given the whole region.
bool receives_region(Failure failure);

inline constexpr std::array kRecoveryMetrics = std::to_array<services::Metric>({
    {.name = "recovery_us", .noun = "time of the recovery", .title = "Recovery", .unit = "us"},
    {.name = "recovery_open_us",
     .noun = "time until what was left was recovered",
     .title = "Recovery of what was left",
     .unit = "us"},
    {.name = "recovery_bytes",
     .noun = "bytes replayed or copied",
     .title = "Replayed or copied",
     .unit = "bytes"},
    {.name = "recovery_us_per_mb",
     .noun = "recovery time of a megabyte",
     .title = "Recovery per megabyte",
     .unit = "us"},
});

}  // namespace perdura::bench
