// Read After Write, the network-dominant baseline of the Erda paper (section 5.1): a client asks
// for an address in the server's ring buffer, WRITEs a record there, and issues a READ after the
// WRITE. The server's CPU polls the ring buffer and applies the records that have arrived.
// docs/systems/read-after-write.md describes what the paper leaves open.
#pragma once

#include "services/kv/kv.h"

namespace perdura::systems {

extern const kv::KvSystem kReadAfterWrite;

}  // namespace perdura::systems
