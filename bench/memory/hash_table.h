// A hash table of 64-bit keys and values in a mapped region. Each insert is a sync point ("Mojim",
// section 3.3.2). The table puts entries where Google's dense_hash_map puts them, and grows when
// that one does; that class itself cannot be used, since it has pointers to its entries instead of
// accesses to a region, which are counted, timed and explored.
//
// As there, the map's own fields are in DRAM. The region holds what is needed to find the entries
// again: one word with the number of buckets, and all tables so far. The table of n buckets begins
// at a distance of n entries from that word, so a larger table does not overlap the one before, and
// replaces it by one store to the word.
#pragma once

#include <cstdint>
#include <limits>

#include "services/memory/memory.h"

namespace perdura::bench {

class HashTable {
 public:
  static constexpr std::uint64_t kNoKey = std::numeric_limits<std::uint64_t>::max();
  static constexpr Bytes kEntry = 2 * kWord;  // key, value
  static constexpr std::uint64_t kLeastBuckets = 32;

  // The table is stored from `begin` on, a multiple of `sync_size`. An insert syncs the aligned
  // block of `sync_size` bytes around its entry; `sync_size` is a power of two from kEntry to 4096.
  HashTable(Bytes begin, Bytes sync_size) : begin_(begin), sync_size_(sync_size) {}

  // The size of a table after so many inserts, including all smaller tables before it.
  static Bytes size_after(std::uint64_t inserts);

  // Inserts an entry, unless there is one of this key, which must not be kNoKey, and syncs it. The
  // sync points of a table that has grown are its pieces, then the word that names it.
  Task<tl::expected<void, services::SyncError>> insert(services::MappedMemory& memory,
                                                       std::uint64_t key, std::uint64_t value);

 private:
  Bytes table_of(std::uint64_t buckets) const { return begin_ + buckets * kEntry; }
  Bytes entry_offset(pmem::Region& region, std::uint64_t key) const;
  void grow(pmem::Region& region);
  Task<tl::expected<void, services::SyncError>> sync_all(services::MappedMemory& memory);

  Bytes begin_;
  Bytes sync_size_;
  std::uint64_t buckets_ = 0;
  std::uint64_t entries_ = 0;
};

}  // namespace perdura::bench
