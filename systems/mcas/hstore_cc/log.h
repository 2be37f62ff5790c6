// The change log of hstore-cc, the variant of hstore whose allocator is in persistent memory (MCAS,
// section 3.2): a record of the last change of the table. The map of the heap, which a change also
// modifies, is stored elsewhere. The log's data follows the root of the table:
//
//      0        64       72
//      +--------+--------+
//      | record | pool   |   the pool's number in the map
//      +--------+--------+
//
//   1. the record of the change is written and flushed: it is one line, its first word last
//   2. the objects that the change allocates are marked in the map, flushed with the next store
//   3. the table changes, by one store of 8 bytes
//   4. the objects that the change frees are free in the map, which is flushed
//
// A record remains until the next change begins; by then its own change has long been durable.
// After a failure the table tells whether step 3 has happened: if so, step 4 is carried out, else
// step 2 is undone. Both may be repeated, so the record remains valid, and a failure during
// recovery does no harm. The first word also has the number of items, so a restart need not count
// them.
#pragma once

#include "systems/mcas/hstore/change_log.h"
#include "systems/mcas/hstore_cc/heap_map.h"
#include "systems/mcas/storage/region_allocator.h"

namespace perdura::systems::mcas::hstore_cc {

class Log final : public hstore::ChangeLog {
 public:
  static constexpr Bytes kSize = 2 * kCacheLine;

  // The log of the pool with this identifier. The heap map is at offset `map`.
  Log(Memory memory, const RegionAllocator& regions, std::uint64_t pool, Bytes map,
      const Heap::Geometry& geometry)
      : memory_(memory), regions_(regions), pool_(pool), map_(memory, map, geometry) {}

  Bytes size() const override { return kSize; }
  void create(Bytes offset, std::span<const ByteRange> objects) override;
  void begin(const hstore::TableChange& change) override;
  void finish(const hstore::TableChange& change) override;
  hstore::TableChange recover(Bytes offset) override;
  void settle(const hstore::TableChange& last, bool happened, Heap& heap) override;
  std::string audit(const std::vector<ByteRange>& objects) const override;

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
