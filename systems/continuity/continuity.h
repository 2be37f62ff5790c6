// Continuity hashing ("Consistent RDMA-Friendly Hashing on Remote Persistent Memory", section II):
// a get is one READ of a segment; put and delete are requests to the server.
// docs/systems/continuity.md describes what the paper leaves open.
#pragma once

#include "services/kv/kv.h"

namespace perdura::systems {

extern const kv::KvSystem kContinuity;

}  // namespace perdura::systems
