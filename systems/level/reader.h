// How a client of level hashing looks up a key.
#pragma once

#include "systems/bucket_hash/client.h"
#include "systems/level/layout.h"

namespace perdura::systems::level {

using bucket_hash::LookedUp;
using bucket_hash::Plan;
using bucket_hash::Reads;

// What a client knows of an index when it connects.
Plan plan_of(const Geometry& geometry, std::uint32_t bottom);

class Reader {
 public:
  explicit Reader(const Plan& plan);

  static Bytes read_room() { return kBucketSize; }
  // One READ after the other until the key is found: of the two candidates in the top level, then
  // of those in the bottom level. More if the table has been resized since this client last knew,
  // or if a READ was torn.
  Task<std::optional<LookedUp>> look_up(Reads reads, Slot key);

 private:
  struct Wanted {
    Slot key;
    Hashes hashes;
  };
  // Each is nothing if the connection broke. `search` goes on from a level, to where sealed buckets
  // lead; `later` says whether it did.
  Task<std::optional<Search>> search(Reads& reads, std::uint32_t level, Wanted wanted, bool& later);
  Task<std::optional<Search>> search_level(Reads& reads, std::uint32_t level, Wanted wanted);
  Task<std::optional<Search>> search_bucket_at(Reads& reads, Bytes offset, Wanted wanted);

  Geometry geometry_;
  std::uint32_t bottom_;  // no item is in an earlier level
};

}  // namespace perdura::systems::level
