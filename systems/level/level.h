// Level hashing ("Write-Optimized and High-Performance Hashing Index Scheme for Persistent Memory",
// Zuo, Hua and Wu, OSDI 2018, section 3), with the RDMA procedures that "Consistent RDMA-Friendly
// Hashing on Remote Persistent Memory", section III, adds: a get reads the candidate buckets with
// one-sided READs, put and delete are requests to the server. docs/systems/level.md describes what
// the papers leave open.
#pragma once

#include "services/kv/kv.h"

namespace perdura::systems {

extern const kv::KvSystem kLevel;

}  // namespace perdura::systems
