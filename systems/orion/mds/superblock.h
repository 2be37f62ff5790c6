// The superblock that the MDS' memory has besides nova's.
#pragma once

#include "systems/orion/protocol/layout.h"
#include "systems/orion/protocol/parameters.h"

namespace perdura::systems::orion {

OrionSuperblock superblock_of(const Parameters& parameters);
bool is_intact(const OrionSuperblock& superblock);

}  // namespace perdura::systems::orion
