// P-FaRM-KV ("Consistent RDMA-Friendly Hashing on Remote Persistent Memory", section III, after
// "FaRM: Fast Remote Memory"): a get is one READ of two buckets; put and delete are requests to the
// server. docs/systems/p-farm-kv.md describes what the papers leave open.
#pragma once

#include "services/kv/kv.h"

namespace perdura::systems {

extern const kv::KvSystem kPFarmKv;

}  // namespace perdura::systems
