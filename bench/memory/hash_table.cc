#include "bench/memory/hash_table.h"

#include <algorithm>
#include <bit>

namespace perdura::bench {

using services::MappedMemory;
using services::MemoryRange;
using services::SyncError;

Bytes HashTable::size_after(std::uint64_t inserts) {
  const std::uint64_t buckets = std::max(kLeastBuckets, std::bit_ceil(2 * inserts));
  return 2 * buckets * kEntry;
}

// The offset of the entry with this key, or of the free one where it belongs. The hash of a number
// is the number, and the distances between the buckets that are tried are 1, 2, 3, ...
Bytes HashTable::entry_offset(pmem::Region& region, std::uint64_t key) const {
  std::uint64_t bucket = key;
  for (std::uint64_t distance = 1;; bucket += distance++) {
    const Bytes offset = table_of(buckets_) + (bucket & (buckets_ - 1)) * kEntry;
    const std::uint64_t found = region.load(offset);
    if (found == key || found == kNoKey) return offset;
  }
}

void HashTable::grow(pmem::Region& region) {
  const std::uint64_t before = buckets_;
  buckets_ = std::max(kLeastBuckets, 2 * before);
  for (Bytes offset = table_of(buckets_); offset < table_of(2 * buckets_); offset += kEntry) {
    region.store(offset, kNoKey);
    region.store(offset + kWord, 0);
  }
  for (Bytes offset = table_of(before); offset < table_of(2 * before); offset += kEntry) {
    const std::uint64_t key = region.load(offset);
    if (key == kNoKey) continue;
    const Bytes target = entry_offset(region, key);
    region.store(target, key);
    region.store(target + kWord, region.load(offset + kWord));
  }
}

Task<tl::expected<void, SyncError>> HashTable::insert(MappedMemory& memory, std::uint64_t key,
                                                      std::uint64_t value) {
  pmem::Region& region = memory.region();
  const bool grows = entries_ + 1 > buckets_ / 2;
  if (grows) grow(region);
  const Bytes offset = entry_offset(region, key);
  if (region.load(offset) == kNoKey) {
    region.store(offset, key);
    region.store(offset + kWord, value);
    ++entries_;
  }
  if (grows) {
    const auto synced = co_await sync_all(memory);
    co_return synced;
  }
  const auto synced =
      co_await memory.sync(MemoryRange{offset / sync_size_ * sync_size_, sync_size_});
  co_return synced;
}

Task<tl::expected<void, SyncError>> HashTable::sync_all(MappedMemory& memory) {
  constexpr Bytes kPiece = 64 * KiB;  // a few requests, since a sync point has to fit into a log
  for (Bytes offset = table_of(buckets_); offset < table_of(2 * buckets_); offset += kPiece) {
    const Bytes length = std::min(kPiece, table_of(2 * buckets_) - offset);
    const auto synced = co_await memory.sync(MemoryRange{offset, length});
    if (!synced) co_return synced;
  }
  memory.region().store(begin_, buckets_);
  const auto synced = co_await memory.sync(MemoryRange{begin_, kWord});
  co_return synced;
}

}  // namespace perdura::bench
