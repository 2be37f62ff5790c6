// The change log of hstore-cc, the variant of hstore whose allocator is in persistent memory (MCAS,
// section 3.2): one record, of the last change of the table, and the map of the heap. They stand
// behind the root of the table:
//
//      0        64       72
//      +--------+--------+
//      | record | pool   |   by the number that the map has given it
//      +--------+--------+
//
//   1. the record of the change is written and flushed: in one line, its first word last
//   2. the objects that it allocates are in use in the map; flushed with the next store
//   3. the table changes, by one store of 8 bytes
//   4. what it frees is free in the map, and flushed
//
// A record remains until the next change begins, when the change that it is of has been durable for
// long. After a failure the table says whether step 3 has happened: then 4 is done, else 2 undone.
// Both may be done again, so the record remains, and a failure of recovery does no harm. The first
// word also has the number of items, so none is counted at a restart.
#pragma once

#include "systems/mcas/hstore/change_log.h"
#include "systems/mcas/hstore_cc/heap_map.h"
#include "systems/mcas/storage/region_allocator.h"

namespace perdura::systems::mcas::hstore_cc {

class Log final : public hstore::ChangeLog {
 public:
  static constexpr Bytes kSize = 2 * kCacheLine;

  // Of the pool with this identifier. The heap's map lies at `map`.
  Log(Memory memory, const RegionAllocator& regions, std::uint64_t pool, Bytes map,
      const Heap::Geometry& geometry)
      : memory_(memory), regions_(regions), pool_(pool), map_(memory, map, geometry) {}

  Bytes size() const override { return kSize; }
  void create(Bytes offset, std::span<const Place> objects) override;
  void begin(const hstore::Change& change) override;
  void finish(const hstore::Change& change) override;
  hstore::Change recover(Bytes offset) override;
  void settle(const hstore::Change& last, bool happened, Heap& heap) override;
  std::string audit(const std::vector<Place>& objects) const override;

 private:
  Bytes pool_number() const { return offset_ + kCacheLine; }
  template <class Visit>
  void for_each_area(Visit visit) const;

  Memory memory_;
  const RegionAllocator& regions_;
  std::uint64_t pool_;
  HeapMap map_;
  Bytes offset_ = 0;
};

}  // namespace perdura::systems::mcas::hstore_cc
