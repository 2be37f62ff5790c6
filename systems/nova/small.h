// The settings with which failures are tried in a file system of nova, and in systems that are
// built on its volumes.
#pragma once

#include <array>

#include "services/service.h"
#include "systems/nova/layout.h"

namespace perdura::systems::nova {

// Log pages of few entries, so that logs have several pages and garbage is collected; and so few
// inodes in DRAM that logs are read again.
inline constexpr std::array kSmall{
    services::Setting{"inodes", 32}, services::Setting{"log_page_bytes", kSmallestLogPage},
    services::Setting{"gc_pages", 4}, services::Setting{"cached_inodes", 4}};

}  // namespace perdura::systems::nova
