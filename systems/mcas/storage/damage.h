// The memory of a pool is hostile input: the words that a shard believes, and those that are
// damage.
//
// Active data objects are given their pool's memory whole: values, and with them the engine's own
// structures, which lie in the same granules. So all that a shard reads there is input of somebody
// whom it does not trust, who may change it at any moment:
//
//   it is copied once, the copy is checked, and only the copy is used
//   a place that it says must lie in the memory of the pool, and one that is to be freed must be
//   that of an object which the heap has allocated; the heap's own state is in DRAM, or outside of
//   all pools' memory
//   numbers of entries are taken modulo the table's size, and no loop ends by what is read
//
// A word that the shard cannot have written is damage. The pool is then served no more; others
// are, and the shard goes on. The same is found in a pool whose memory was damaged otherwise.
#pragma once

#include <stdexcept>

namespace perdura::systems::mcas {

// Thrown before anything is changed by what was read. The message is a phrase: what is wrong. Like
// an access outside of a region, it is a finding for whoever explores a system.
struct DamagedPool : std::out_of_range {
  using std::out_of_range::out_of_range;
};

}  // namespace perdura::systems::mcas
