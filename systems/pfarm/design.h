// P-FaRM-KV as its server and its sessions use it (bucket_hash/system.h).
#pragma once

#include "systems/bucket_hash/locks.h"
#include "systems/pfarm/index.h"
#include "systems/pfarm/parameters.h"
#include "systems/pfarm/reader.h"

namespace perdura::systems::pfarm {

struct Design {
  static constexpr std::string_view kName = pfarm::kName;
  using Parameters = pfarm::Parameters;
  using Index = pfarm::Index;
  using IndexReader = pfarm::IndexReader;

  // Two homes and an overflow block: four items have the first home, six the second. Of keys 0 to
  // 3, one finds room after an item has moved, one in the block, and one after a resize.
  static constexpr std::array kSmallest{services::Setting{"buckets", 2},
                                        services::Setting{"overflow_percent", 50}};
  static constexpr std::array<std::uint64_t, 10> kFilling{1000, 1002, 1004, 1007, 1001,
                                                          1003, 1005, 1006, 1009, 1011};
  static constexpr std::array kSmallStores{kv::SmallStore{kSmallest, kFilling}};
  static constexpr std::array kEvents = Index::kEvents;

  static std::array<std::uint64_t, 4> shape_of(const Geometry& geometry) {
    return {geometry.homes, geometry.overflow_percent, geometry.resizes, geometry.logs};
  }
  using Hash = std::uint64_t;
  static Hash hash_of(const Slot& key) { return pfarm::hash_of(key); }
  static std::uint32_t table_in_use(const Index& index) { return index.level(); }
  static Plan plan_of(const Geometry& geometry, std::uint32_t level) {
    return pfarm::plan_of(geometry, level);
  }

  // Both lock the buckets that the operation touches. The lock of the home bucket also covers its
  // chain of overflow blocks.
  static Index::Outcome put(Index& index, bucket_hash::LockTable& locks, std::uint32_t worker,
                            const Slot& item, Hash hash) {
    const bucket_hash::LockTable::Held held(locks, index.touched_by_put(hash));
    return index.try_put(item, hash, worker);
  }
  static kv::Result<void> erase(Index& index, bucket_hash::LockTable& locks, std::uint32_t worker,
                                const Slot& key, Hash hash) {
    const bucket_hash::LockTable::Held held(locks, index.touched_by_erase(hash));
    return index.erase(key, hash, worker);
  }
};

}  // namespace perdura::systems::pfarm
