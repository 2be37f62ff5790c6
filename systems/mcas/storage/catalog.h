// The catalog of a shard's pools, in its persistent memory: a fixed number of slots of two lines.
//
//      0       8      16      24       64                     128
//      +-------+------+-------+--------+-----------------------+
//      | state | root | limit | unused | name, then zeros      |
//      +-------+------+-------+--------+-----------------------+
//
//      state   63                    8 7     3   2       1     0
//              +----------------------+-------+-------+---------+
//              | identifier           | 0     | index | phase   |
//              +----------------------+-------+-------+---------+
//
// A pool exists when the store of its state is durable; the rest of its slot is durable before
// that. So a failure during its creation leaves no pool, and perhaps regions of an identifier that
// no pool has, which recovery releases. A pool that is being removed is first marked so, and its
// slot becomes free when all of its memory has been released; recovery completes that.
//
// A free slot keeps the identifier of its last pool. A new identifier is one more than the largest
// in any slot, so none is used twice, without a counter of its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "systems/mcas/storage/memory.h"

namespace perdura::systems::mcas {

struct CatalogSlot {
  static constexpr Bytes kLongestName = 63;

  std::uint64_t state = 0;
  std::uint64_t root = 0;   // the root of the pool's engine
  std::uint64_t limit = 0;  // the most bytes that the pool may have
  std::array<std::uint64_t, 5> unused{};
  std::array<char, kLongestName + 1> name{};
};
static_assert(offsetof(CatalogSlot, root) == 8);
static_assert(offsetof(CatalogSlot, limit) == 16);
static_assert(offsetof(CatalogSlot, name) == kCacheLine);
static_assert(sizeof(CatalogSlot) == 2 * kCacheLine);

class Catalog {
 public:
  using SlotNumber = std::uint32_t;
  enum class Phase : std::uint8_t { free, exists, being_removed };

  // The contents of a slot; if it is free, only `identifier` has a meaning.
  struct PoolEntry {
    Phase phase = Phase::free;
    bool has_index = false;  // a secondary index, built when the pool is opened
    std::uint64_t identifier = 0;
    Bytes root = 0;
    Bytes limit = 0;
    std::string name;
  };

  // The size of the catalog, which must begin at a multiple of a cache line.
  static Bytes size(std::uint32_t slots) { return Bytes{slots} * sizeof(CatalogSlot); }
  Catalog(Memory memory, Bytes offset, std::uint32_t slots)
      : memory_(memory), offset_(offset), entries_(slots) {}

  // Either format() or recover() must be called first.
  // Makes all slots free, whatever they contain.
  void format();
  void recover();

  // The entries by number. A pool that is being removed is no longer found by its name.
  const std::vector<PoolEntry>& entries() const { return entries_; }
  std::optional<SlotNumber> find(std::string_view name) const;
  std::optional<SlotNumber> find_free() const;
  std::uint64_t next_identifier() const;

  // Each of these is durable when it returns, and atomic with regard to failures.
  // `name` must have 1 to CatalogSlot::kLongestName bytes, none of them 0.
  void add(SlotNumber slot, std::string_view name, std::uint64_t identifier, Bytes root,
           Bytes limit);
  void set_has_index(SlotNumber slot, bool has_index);
  void begin_removal(SlotNumber slot);
  void end_removal(SlotNumber slot);

 private:
  Bytes slot_offset(SlotNumber slot) const { return offset_ + size(slot); }
  void store_state(SlotNumber slot);

  Memory memory_;
  Bytes offset_;
  std::vector<PoolEntry> entries_;
};

}  // namespace perdura::systems::mcas
