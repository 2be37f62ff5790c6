// MCAS (Memory Centric Active Storage): a network-attached key-value store whose shards keep hash
// table, keys and values in persistent memory, and answer a put when it is durable there ("An
// Architecture for Memory Centric Active Storage (MCAS)", Waddington et al.; section 3).
// docs/systems/mcas.md describes what the paper leaves open and which parts of MCAS are
// implemented.
#pragma once

#include "services/kv/kv.h"
#include "services/objects/objects.h"

namespace perdura::systems {

extern const kv::KvSystem kMcas;
// The same design with pools, which clients create and open (section 3.1).
extern const objects::System kMcasObjects;

}  // namespace perdura::systems
