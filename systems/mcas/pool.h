// The persistent memory of a shard, as it is found after a restart. Until there are operations on
// pools, a shard has one pool, with the identifier 1.
//
// The header's checksum covers what never changes: all but the magic, the version and the checksum
// itself. The magic is written last when a shard's memory is created, so memory whose magic is 0 is
// that of a creation which was interrupted, and is created again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "platform/platform.h"
#include "systems/mcas/hstore/hstore.h"
#include "systems/mcas/parameters.h"
#include "systems/mcas/storage/region_allocator.h"

namespace perdura::systems::mcas {

inline constexpr std::uint64_t kPool = 1;

// All that memory of another shape would be misread with.
struct PoolShape {
  std::uint64_t key_size = 0;
  std::uint64_t value_size = 0;
  std::uint64_t max_key_size = 0;
  std::uint64_t max_value_size = 0;
  std::uint64_t records = 0;
  std::uint64_t first_segment = 0;
  std::uint64_t most_segments = 0;
  std::uint64_t hops = 0;
  std::uint64_t heap_region = 0;
  std::uint64_t granule = 0;
  std::uint64_t granules = 0;

  static PoolShape of(const KvConfig& config, const Parameters& parameters);
  friend bool operator==(const PoolShape&, const PoolShape&) = default;
};
static_assert(sizeof(PoolShape) == 88);

struct PoolHeader {
  std::uint64_t magic = 0;
  std::uint32_t version = 0;
  std::uint32_t crc = 0;
  std::array<char, 16> system{};
  PoolShape shape;
  std::uint64_t root = 0;  // of the pool's engine
};
static_assert(offsetof(PoolHeader, crc) == 12);
static_assert(offsetof(PoolHeader, system) == 16);
static_assert(offsetof(PoolHeader, shape) == 32);
static_assert(offsetof(PoolHeader, root) == 120);
static_assert(sizeof(PoolHeader) == 128 && sizeof(PoolHeader) <= kAllocatorOffset);

class Pool {
 public:
  // Opens the memory `name` of a node and recovers the pool in it, or creates both. Throws
  // UsageError if it is damaged, belongs to another system or was created for another shape.
  Pool(Node& node, const std::string& name, const KvConfig& config, const Parameters& parameters);

  pmem::Region& region() const { return *region_; }
  hstore::Hstore& engine() { return engine_; }
  const hstore::Hstore& engine() const { return engine_; }
  // What recovery has found to do.
  bool undone_region_change() const { return undone_region_change_; }
  const hstore::Hstore::Recovered& recovered() const { return recovered_; }
  // What contradicts itself, as a phrase; empty if nothing does.
  std::string audit() const;

 private:
  void create(PoolHeader header);

  std::unique_ptr<pmem::Region> region_;
  Memory memory_;
  RegionAllocator regions_;
  hstore::Hstore engine_;
  bool undone_region_change_ = false;
  hstore::Hstore::Recovered recovered_;
};

}  // namespace perdura::systems::mcas
