// The map of memory in use in a shard's heaps, in persistent memory: the state of hstore-cc's
// allocator (MCAS, section 3.2). It covers all memory that the region allocator divides, and takes
// 1/256 of it, so a pool needs no memory of its own for it.
//
//      0          64          64 + stride        + stride
//      +----------+-----------+------------------+----
//      | pools    | region 0  | region 1         | ...
//      +----------+-----------+------------------+----
//
//      a region   | word 8 | bits, region size / 256, or 8 |
//
//   pools   the number of pools created so far with this engine
//   word    63 .. 8: the number of the pool that the region belongs to; 7 .. 0: the logarithm of
//           the size of its slots, or 0 if it is not divided into slots
//   bits    one for each slot, or else for each line: 1 if it is in use
//
// If a region's word has the number of a pool other than the region's owner, its bits are
// meaningless and the region is free. So memory that is given to a pool needs no preparation, and
// memory that it returns no clearing.
#pragma once

#include <cstdint>

#include "systems/mcas/storage/heap.h"
#include "systems/mcas/storage/memory.h"

namespace perdura::systems::mcas::hstore_cc {

class HeapMap {
 public:
  // The size of the map of so much memory. The map must begin at a multiple of a cache line.
  static Bytes size(Bytes memory, Bytes region_size);

  // The map at `offset` of the regions that the geometry describes.
  HeapMap(Memory memory, Bytes offset, const Heap::Geometry& geometry)
      : memory_(memory), offset_(offset), geometry_(geometry) {}

  // add_pool() gives a new pool its number, which is durable; open_pool() sets that of an existing
  // one. Everything below concerns this pool.
  std::uint64_t add_pool();
  void open_pool(std::uint64_t number) { pool_ = number; }
  // The number of the pool for which an object of the heap was allocated.
  std::uint64_t pool_of(ByteRange object) const;

  // Mark an object as in use or free. Flushed, but not durable yet. A failure may leave a part of a
  // large object in use.
  void use(ByteRange object);
  void free(ByteRange object);
  // Frees an object after a restart that may have interrupted use() or free(). Flushes also the
  // word of its region, since a process that died leaves what is visible, not what is durable
  // (docs/restart.md).
  void free_again(ByteRange object);
  bool is_used(ByteRange object) const;

  // Reports to the heap everything in use in this area.
  void read(ByteRange area, Heap& heap) const;
  // The number of bytes in use in this area.
  Bytes used_bytes(ByteRange area) const;
  Bytes bytes_of(ByteRange object) const { return geometry_.slot_size(object.length); }

 private:
  // Bits of one region: those of an object, or of a part of it.
  struct Bits {
    std::uint64_t region = 0;  // its number
    Bytes slot_size = 0;       // 0: the region is not divided
    std::uint64_t first = 0;
    std::uint64_t end = 0;
  };

  template <class Visit>
  void for_each_bits(ByteRange object, Visit visit) const;
  // Calls `visit(region, slot size, bits)` for each region of the area that is partly in use.
  template <class Visit>
  void for_each_region(ByteRange area, Visit visit) const;

  Bytes bit_bytes() const;
  Bytes word_offset(std::uint64_t region) const {
    return offset_ + kCacheLine + region * (kWord + bit_bytes());
  }
  Bytes bits_offset(std::uint64_t region) const { return word_offset(region) + kWord; }
  Bytes begin_of(std::uint64_t region) const {
    return geometry_.first + region * geometry_.region_size;
  }
  std::uint64_t word_of(Bytes slot_size) const;
  bool is_divided(const Bits& bits) const {
    return memory_.region().load(word_offset(bits.region)) == word_of(bits.slot_size);
  }
  std::uint64_t load(std::uint64_t region, std::uint64_t word) const {
    return memory_.region().load(bits_offset(region) + word * kWord);
  }
  // Divides the region into slots of another size, none of which is in use.
  void divide(std::uint64_t region, Bytes slot_size);
  void set(const Bits& bits, bool used);

  Memory memory_;
  Bytes offset_;
  Heap::Geometry geometry_;
  std::uint64_t pool_ = 0;
};

}  // namespace perdura::systems::mcas::hstore_cc
