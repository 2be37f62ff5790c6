// The parameter `backups` of the drivers that use replicated memory, and how many copies a point
// has according to it.
#pragma once

#include <algorithm>

#include "harness/config/experiment.h"
#include "platform/base/parameter.h"
#include "services/memory/memory.h"

namespace perdura::bench {

inline constexpr Parameter kBackups{.name = "backups",
                                    .type = Count{1, 62},
                                    .usual = 1,
                                    .identifies = true,
                                    .noun = "backups",
                                    .title = "Backups",
                                    .what = "nodes after the mirror, of systems that have any"};

// The number of copies of a point: the mirror and the backups.
inline NodeId copies_of(const harness::PointSettings& settings,
                        const services::MemorySystem& system) {
  const auto backups = static_cast<NodeId>(settings.number("backups"));
  return std::min(system.copies.most, std::max(system.copies.least, backups + 1));
}

}  // namespace perdura::bench
