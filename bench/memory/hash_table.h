// A hash table of 64-bit keys and values in a mapped region, each insert of which is a sync point
// ("Mojim", section 3.3.2). It puts entries where Google's dense_hash_map puts them, and grows when
// that one does; that class itself cannot be used, since it has pointers to its entries instead of
// accesses to a region, which are counted, timed and explored.
//
// As there, the map's own fields are in DRAM. In the region is what is needed to find the entries
// again: one word, how many buckets the table has, and the tables that there have been, the one of
// n buckets n entries after that word. So a table that has grown takes the place of the one before
// by one store.
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

  // From `begin` on, which must be a multiple of `sync_size`. What is synced of an insert are the
  // aligned `sync_size` bytes around the entry: a power of two from kEntry to 4096.
  HashTable(Bytes begin, Bytes sync_size) : begin_(begin), sync_size_(sync_size) {}

  // The size of a table after so many inserts, with all smaller tables that it has been.
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
