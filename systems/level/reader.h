// A client's lookup of a key in level hashing.
#pragma once

#include "systems/bucket_hash/client.h"
#include "systems/level/layout.h"

namespace perdura::systems::level {

using bucket_hash::LookedUp;
using bucket_hash::Plan;
using bucket_hash::Reads;

// The information about an index that a client gets when it connects.
Plan plan_of(const Geometry& geometry, std::uint32_t bottom);

class IndexReader {
 public:
  explicit IndexReader(const Plan& plan);

  static Bytes read_room() { return kBucketSize; }
  // Reads one bucket after the other until the key is found: the two candidates of the top level,
  // then those of the bottom level. Takes more READs if the table has been resized since this
  // client last knew, or if a READ was torn.
  Task<std::optional<LookedUp>> look_up(Reads reads, Slot key);

 private:
  struct Wanted {
    Slot key;
    Hashes hashes;
  };
  // Both return nullopt if the connection broke. `search` starts at a level and follows the seals
  // of buckets to later levels; `later` is set if it did.
  Task<std::optional<Search>> search(Reads& reads, std::uint32_t level, Wanted wanted, bool& later);
  Task<std::optional<Search>> search_level(Reads& reads, std::uint32_t level, Wanted wanted);
  Task<std::optional<Search>> search_bucket_at(Reads& reads, Bytes offset, Wanted wanted);

  Geometry geometry_;
  std::uint32_t bottom_;  // no item is in a level before this one
};

}  // namespace perdura::systems::level
