#include "systems/pfarm/pfarm.h"

#include "systems/bucket_hash/system.h"
#include "systems/pfarm/design.h"

namespace perdura::systems {

constinit const kv::KvSystem kPFarmKv = bucket_hash::system_of<pfarm::Design>(
    "P-FaRM-KV",
    "Consistent RDMA-Friendly Hashing on Remote Persistent Memory, Liu, Hua and Bai; "
    "section III, after FaRM: Fast Remote Memory, Dragojević et al., NSDI'14");

}  // namespace perdura::systems
