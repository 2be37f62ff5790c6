// Level hashing as its server and its sessions use it (bucket_hash/system.h).
#pragma once

#include "systems/bucket_hash/locks.h"
#include "systems/level/index.h"
#include "systems/level/parameters.h"
#include "systems/level/reader.h"

namespace perdura::systems::level {

struct Design {
  static constexpr std::string_view kName = level::kName;
  using Parameters = level::Parameters;
  using Index = level::Index;
  using IndexReader = level::IndexReader;

  // The candidate buckets of keys 0 and 1 are full. The first item can move to make room for one of
  // them; for the other one the table must be resized.
  static constexpr std::array kSmallest{services::Setting{"top_buckets", 4}};
  static constexpr std::array<std::uint64_t, 16> kFilling{1002, 1001, 1007, 1011, 1012, 1015,
                                                          1016, 1021, 1025, 1034, 1042, 1049,
                                                          1054, 1055, 1056, 1064};
  static constexpr std::array kSmallStores{kv::SmallStore{kSmallest, kFilling}};
  static constexpr std::array kEvents = Index::kEvents;

  static std::array<std::uint64_t, 4> shape_of(const Geometry& geometry) {
    return {geometry.buckets, geometry.resizes, geometry.logs, 0};
  }
  using Hash = Hashes;
  static Hash hash_of(const Slot& key) { return Hashes::of(key); }
  static std::uint32_t table_in_use(const Index& index) { return index.bottom(); }
  static Plan plan_of(const Geometry& geometry, std::uint32_t bottom) {
    return level::plan_of(geometry, bottom);
  }

  // Both lock the candidate buckets of the key. A movement needs another bucket, which is known
  // only during the put. If another worker holds it, the put releases all locks and takes them
  // again in order, including that one. So it never returns `busy`.
  static Index::Outcome put(Index& index, bucket_hash::LockTable& locks, std::uint32_t worker,
                            const Slot& item, const Hash& hashes) {
    const std::array<std::uint64_t, 4> candidates = index.candidates(hashes);
    Index::Writer writer{.number = worker, .busy = candidates[0]};
    for (;;) {
      const std::array<std::uint64_t, 5> buckets{candidates[0], candidates[1], candidates[2],
                                                 candidates[3], writer.busy};
      bucket_hash::LockTable::Held held(locks, buckets);
      writer.held = &held;
      const Index::Outcome outcome = index.try_put(item, hashes, writer);
      if (outcome != Index::Outcome::busy) return outcome;
    }
  }
  static kv::Result<void> erase(Index& index, bucket_hash::LockTable& locks, std::uint32_t,
                                const Slot& key, const Hash& hashes) {
    const bucket_hash::LockTable::Held held(locks, index.candidates(hashes));
    return index.erase(key, hashes);
  }
};

}  // namespace perdura::systems::level
