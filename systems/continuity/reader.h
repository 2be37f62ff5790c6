// A client's lookup of a key in continuity hashing.
#pragma once

#include "systems/bucket_hash/client.h"
#include "systems/continuity/layout.h"

namespace perdura::systems::continuity {

using bucket_hash::LookedUp;
using bucket_hash::Plan;
using bucket_hash::Reads;

// The information about an index that a client gets when it connects. `level` is that of the table
// in use.
Plan plan_of(const Geometry& geometry, std::uint32_t level);

class IndexReader {
 public:
  explicit IndexReader(const Plan& plan);

  Bytes read_room() const { return geometry_.longest_segment(); }
  // Takes one READ, and a second one if the segment does not have the key and its pair has a group.
  // Takes more during a resize, or if a READ was torn.
  Task<std::optional<LookedUp>> look_up(Reads reads, Slot key);

 private:
  // Searches one table; returns nullopt if the connection broke.
  Task<std::optional<Search>> search(Reads& reads, Table table, Slot key);
  Task<std::optional<Search>> search_once(Reads& reads, Table table, Slot key);

  Geometry geometry_;
  std::uint32_t level_;  // number of the newest table known to hold all items
};

}  // namespace perdura::systems::continuity
