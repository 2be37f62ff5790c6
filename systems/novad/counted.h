// The counters of novad: events, which explorations have to meet, and metrics.
#pragma once

#include <array>
#include <cstddef>

#include "services/event.h"
#include "services/metric.h"
#include "systems/nova/volume.h"

namespace perdura::systems::novad {

// The events that are novad's own.
enum class Counted : std::size_t { changes = nova::kHappened };
inline constexpr std::size_t kEventCount = nova::kHappened + 1;

// First those of the server's volume, in the order of nova::Happened. The histories of an
// exploration are shorter where each operation is one over a network.
inline constexpr std::array<services::Event, kEventCount> kEvents{
    {{"log pages"},
     {"fast collections"},
     {"links within logs changed", false, true},
     {"thorough collections", false, true},
     {"journaled operations"},
     {"operations redone from journals", true},
     {"orphans reclaimed", true},
     {"changes of what is mapped"}}};

// The order is that of Session::metrics().
inline constexpr std::array kSessionMetrics{
    services::Metric{"rpcs_per_op", "RPCs", "RPCs per operation"},
    services::Metric{"file_reads_per_op", "READs of files", "READs of files per operation"},
    services::Metric{"file_writes_per_op", "WRITEs of files", "WRITEs of files per operation"},
    services::Metric{"refused_accesses", "accesses refused",
                     "READs, WRITEs and COMMITs of files that were refused"},
    services::Metric{"file_commits_per_op", "COMMITs of files", "COMMITs of files per operation"},
};

// The order is that of Server::metrics().
inline constexpr std::array kServerMetrics{
    services::Metric{"server_requests", "requests", "Requests that the server has executed"},
    services::Metric{"refused_requests", "requests refused", "Requests that are none"},
};

}  // namespace perdura::systems::novad
