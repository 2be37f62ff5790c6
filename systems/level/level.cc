#include "systems/level/level.h"

#include "systems/bucket_hash/system.h"
#include "systems/level/design.h"

namespace perdura::systems {

constinit const kv::KvSystem kLevel = bucket_hash::system_of<level::Design>(
    "Level",
    "Write-Optimized and High-Performance Hashing Index Scheme for Persistent Memory, Zuo, Hua "
    "and Wu; section 3; its RDMA procedures: Consistent RDMA-Friendly Hashing on Remote "
    "Persistent Memory, Liu, Hua and Bai; section III");

}  // namespace perdura::systems
