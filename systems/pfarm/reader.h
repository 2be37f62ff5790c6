// A client's lookup of a key in P-FaRM-KV.
#pragma once

#include "systems/bucket_hash/client.h"
#include "systems/pfarm/layout.h"

namespace perdura::systems::pfarm {

using bucket_hash::LookedUp;
using bucket_hash::Plan;
using bucket_hash::Reads;

// The information about an index that a client gets when it connects. `level` is that of the table
// in use.
Plan plan_of(const Geometry& geometry, std::uint32_t level);

class IndexReader {
 public:
  explicit IndexReader(const Plan& plan);

  static Bytes read_room() { return kNeighborhoodSize; }
  // Takes one READ and, if the neighborhood does not have the key, one more for each overflow block
  // of its home bucket. Takes more during a resize, or if a READ was torn.
  Task<std::optional<LookedUp>> look_up(Reads reads, Slot key);

 private:
  // Searches one table; returns nullopt if the connection broke.
  Task<std::optional<Search>> search(Reads& reads, Table table, Slot key);

  Geometry geometry_;
  std::uint32_t level_;  // number of the newest table known to hold all items
};

}  // namespace perdura::systems::pfarm
