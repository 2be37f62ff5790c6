#include "systems/continuity/continuity.h"

#include "systems/bucket_hash/system.h"
#include "systems/continuity/design.h"

namespace perdura::systems {

constinit const kv::KvSystem kContinuity = bucket_hash::system_of<continuity::Design>(
    "Continuity",
    "Consistent RDMA-Friendly Hashing on Remote Persistent Memory, Liu, Hua and Bai; section II");

}  // namespace perdura::systems
