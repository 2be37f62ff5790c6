// Erda: "Write-Optimized and Consistent RDMA-based NVM Systems", Liu, Hua, Li, Liu, 2019.
//
// layout.h     the layout of persistent memory
// protocol.h   the messages between client and server
// log.h        heads, regions, segments
// server.h     metadata, recovery
// client.h     get: two one-sided READs; put: a request and one one-sided WRITE
#pragma once

#include "services/kv/kv.h"

namespace perdura::systems {

extern const kv::KvSystem kErda;

}  // namespace perdura::systems
