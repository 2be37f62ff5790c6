// NOVA, a log-structured file system for hybrid volatile/non-volatile main memories, as far as
// chapters 4 and 5 of Yang's thesis describe what Orion and FileMR take from it; see
// docs/systems/nova.md.
#pragma once

#include "services/fs/fs.h"

namespace perdura::systems {

extern const fs::FsSystem kNova;

}  // namespace perdura::systems
