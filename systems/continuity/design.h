// Continuity hashing as its server and its sessions use it (bucket_hash/system.h).
#pragma once

#include "systems/bucket_hash/locks.h"
#include "systems/continuity/index.h"
#include "systems/continuity/parameters.h"
#include "systems/continuity/reader.h"

namespace perdura::systems::continuity {

struct Design {
  static constexpr std::string_view kName = continuity::kName;
  using Parameters = continuity::Parameters;
  using Index = continuity::Index;
  using IndexReader = continuity::IndexReader;

  // One segment pair that may have added SBuckets, almost full.
  static constexpr std::array kSmallest{services::Setting{"buckets", 2},
                                        services::Setting{"sbuckets", 1},
                                        services::Setting{"added_percent", 100}};
  // These keys fill all slots but those of the added SBuckets.
  static constexpr std::array<std::uint64_t, 12> kFilling{1000, 1001, 1002, 1003, 1004, 1005,
                                                          1006, 1007, 1008, 1009, 1010, 1011};
  static constexpr std::array kSmallStores{kv::SmallStore{kSmallest, kFilling}};
  static constexpr std::array kEvents = Index::kEvents;

  static std::array<std::uint64_t, 4> shape_of(const Geometry& geometry) {
    return {geometry.pairs, std::uint64_t{geometry.resized_sbuckets} << 32 | geometry.sbuckets,
            geometry.added_percent, geometry.resizes};
  }
  using Hash = std::uint64_t;
  static Hash hash_of(const Slot& key) { return continuity::hash_of(key); }
  static std::uint32_t table_in_use(const Index& index) { return index.level(); }
  static Plan plan_of(const Geometry& geometry, std::uint32_t level) {
    return continuity::plan_of(geometry, level);
  }

  // put() and erase() lock the segment pair of the key.
  static Index::Outcome put(Index& index, bucket_hash::LockTable& locks, std::uint32_t,
                            const Slot& item, Hash hash) {
    const bucket_hash::LockTable::Held held(locks, index.pair_of(hash));
    return index.try_put(item, hash);
  }
  static kv::Result<void> erase(Index& index, bucket_hash::LockTable& locks, std::uint32_t,
                                const Slot& key, Hash hash) {
    const bucket_hash::LockTable::Held held(locks, index.pair_of(hash));
    return index.erase(key, hash);
  }
};

}  // namespace perdura::systems::continuity
