// The memory of a pool is untrusted input: the rules by which a shard reads it, and the exception
// for contents that are invalid.
//
// Active data objects are given all of their pool's memory: the values, and also the engine's own
// structures, which are in the same granules. So everything that a shard reads there is input from
// someone whom it does not trust and who may change it at any time:
//
//   data is copied once, the copy is checked, and only the copy is used
//   a range that was read must be in the memory of the pool, and one that is to be freed must be
//   that of an object which the heap has allocated; the heap's own state is in DRAM, or outside of
//   all pools' memory
//   numbers of entries are taken modulo the table's size, and no loop ends by what is read
//
// A word that the shard cannot have written is damage. The pool is then not served anymore; the
// shard continues to serve others. Damage from other causes is detected in the same way.
#pragma once

#include <stdexcept>

namespace perdura::systems::mcas {

// Thrown before anything is changed because of what was read. The message is a phrase that
// describes the damage. Like an access outside of a region, it is a finding when a system is
// explored.
struct DamagedPool : std::out_of_range {
  using std::out_of_range::out_of_range;
};

}  // namespace perdura::systems::mcas
