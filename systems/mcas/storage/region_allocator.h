// The region allocator: the coarse-grained, crash-consistent allocator that divides the memory of a
// shard among pools (MCAS, section 3.2.1). It is used by one thread only and therefore has no lock.
//
// An array of descriptors in persistent memory covers all memory of the shard. A region consists of
// one or more granules; its descriptor holds its offset, its length and the identifier of the pool
// that owns it. Giving memory to a pool changes two descriptors if a free region is divided. So
// that a failure leaves both as before or both as after, their old contents are logged first:
//
//   1. the old contents of the descriptors are written to the undo log, and flushed
//   2. the number of entries in the log is stored, and flushed: the log is valid
//   3. the descriptors are changed, and flushed
//   4. the number of entries becomes 0, and is flushed: the change has happened
//
// After a failure between 2 and 4, recovery writes the old contents back.
//
//      0          64                      256                         256 + 32 * granules
//      +----------+-----------------------+---------------------------+
//      | entries  | undo log: 3 entries   | descriptors               |
//      +----------+-----------------------+---------------------------+
//
//      an entry of the log     | index 8 | unused 24 | descriptor 32 |
//      a descriptor            | offset 8 | length 8 | identifier 8 | unused 8 |
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "systems/mcas/storage/memory.h"

namespace perdura::systems::mcas {

struct RegionDescriptor {
  std::uint64_t offset = 0;      // bytes from the beginning of the shard's memory
  std::uint64_t length = 0;      // 0: the descriptor is unused
  std::uint64_t identifier = 0;  // the pool that owns the region; 0: free
  std::uint64_t unused = 0;      // padding: no descriptor spans two lines

  ByteRange range() const { return {offset, length}; }
  friend bool operator==(const RegionDescriptor&, const RegionDescriptor&) = default;
};
static_assert(offsetof(RegionDescriptor, length) == 8);
static_assert(offsetof(RegionDescriptor, identifier) == 16);
static_assert(sizeof(RegionDescriptor) == 32);

struct UndoEntry {
  std::uint64_t index = 0;  // the descriptor's
  std::array<std::uint64_t, 3> unused{};
  RegionDescriptor before;
};
static_assert(offsetof(UndoEntry, before) == 32);
static_assert(sizeof(UndoEntry) == kCacheLine);

inline constexpr std::uint64_t kFree = 0;  // the identifier of memory that no pool owns

class RegionAllocator {
 public:
  // The memory that is allocated: `granules` times `granule_size` bytes from offset `first` on.
  struct Extent {
    Bytes first = 0;
    std::uint64_t granules = 0;
    Bytes granule_size = 0;

    Bytes size() const { return granules * granule_size; }
  };

  // The size of the allocator's own data, which must begin at a multiple of a cache line.
  static Bytes size(std::uint64_t granules) {
    return kDescriptors + granules * sizeof(RegionDescriptor);
  }
  RegionAllocator(Memory memory, Bytes offset, const Extent& extent)
      : memory_(memory), offset_(offset), extent_(extent) {}

  // Either format() or recover() must be called first.
  // Makes all memory free, whatever the allocator's data contains.
  void format();
  // After a restart: undoes an interrupted change. Returns true if there was one.
  bool recover();

  // Gives a pool a region of at least `length` bytes: the free one with the lowest offset. Returns
  // nothing if no free region is long enough, or the pool would exceed its limit. The contents of
  // the region are unspecified.
  std::optional<ByteRange> allocate(Bytes length, std::uint64_t pool);
  // Returns a region from its pool to the free memory.
  void release(ByteRange region);
  // Sets the most bytes that a pool may have, rounded up to granules. A pool without a limit may
  // have all memory.
  void set_limit(std::uint64_t pool, Bytes limit);

  // Calls `visit(descriptor)` for each region, in no particular order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::uint64_t i = 0; i < extent_.granules; ++i) {
      const RegionDescriptor one = descriptor(i);
      if (one.length > 0) visit(one);
    }
  }
  Bytes capacity() const { return extent_.size(); }
  Bytes free_bytes() const { return free_bytes_; }
  // The bytes that the pool has, that it may have, and that it may still be given.
  Bytes used_by(std::uint64_t pool) const;
  Bytes capacity_of(std::uint64_t pool) const;
  Bytes free_bytes_of(std::uint64_t pool) const;
  // The regions of a pool, in the order of their offsets.
  std::vector<ByteRange> regions_of(std::uint64_t pool) const;
  // Checks that the regions cover the shard's memory, each part of it once. Returns an
  // inconsistency as a phrase; empty if there is none.
  std::string audit() const;

 private:
  static constexpr Bytes kUndoLog = kCacheLine;
  static constexpr std::uint64_t kMostChanges = 3;
  static constexpr Bytes kDescriptors = kUndoLog + kMostChanges * sizeof(UndoEntry);

  struct DescriptorChange {
    std::uint64_t index = 0;
    RegionDescriptor after;
  };

  Bytes descriptor_offset(std::uint64_t index) const {
    return offset_ + kDescriptors + index * sizeof(RegionDescriptor);
  }
  Bytes undo_offset(std::uint64_t entry) const {
    return offset_ + kUndoLog + entry * sizeof(UndoEntry);
  }
  RegionDescriptor descriptor(std::uint64_t index) const {
    return memory_.region().read_object<RegionDescriptor>(descriptor_offset(index));
  }
  void write_descriptor(std::uint64_t index, const RegionDescriptor& descriptor);
  std::uint64_t unused_descriptor() const;
  // Changes descriptors atomically: a failure leaves all of them changed or none.
  void change(std::span<const DescriptorChange> changes);
  // Counts the free bytes and the bytes of each pool.
  void count();

  Memory memory_;
  Bytes offset_;
  Extent extent_;
  Bytes free_bytes_ = 0;
  std::map<std::uint64_t, Bytes> used_;    // by pool
  std::map<std::uint64_t, Bytes> limits_;  // by pool; only those that have one
};

}  // namespace perdura::systems::mcas
