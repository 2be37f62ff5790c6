// The persistent memory of a shard, and the pools in it (MCAS, section 3: a shard manages a set of
// pools, which are the boundary of access rights and of memory).
//
// The header's checksum covers all fields that never change: all but the magic, the version and the
// checksum itself. The magic is written last when a shard's memory is created, so a magic of 0
// means that the creation was interrupted; the memory is then created again.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "platform/platform.h"
#include "services/objects/objects.h"
#include "systems/mcas/engines.h"
#include "systems/mcas/index/key_index.h"
#include "systems/mcas/key_locks.h"
#include "systems/mcas/parameters.h"
#include "systems/mcas/storage/catalog.h"
#include "systems/mcas/storage/damage.h"
#include "systems/mcas/storage/region_allocator.h"

namespace perdura::systems::mcas {

inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Everything that must match before existing memory may be opened.
struct MemoryShape {
  Planned planned;
  std::uint64_t max_key_size = 0;
  std::uint64_t max_value_size = 0;
  std::uint64_t first_segment = 0;
  std::uint64_t most_segments = 0;
  std::uint64_t hops = 0;
  std::uint64_t heap_region = 0;
  std::uint64_t granule = 0;
  std::uint64_t granules = 0;
  std::uint64_t pools = 0;
  std::uint64_t engine = 0;

  static MemoryShape of(const Parameters& parameters);
  friend bool operator==(const MemoryShape&, const MemoryShape&) = default;
};
static_assert(sizeof(MemoryShape) == 104);

struct MemoryHeader {
  std::uint64_t magic = 0;
  std::uint32_t version = 0;
  std::uint32_t crc = 0;
  std::array<char, 16> system{};
  MemoryShape shape;
};
static_assert(offsetof(MemoryHeader, crc) == 12);
static_assert(offsetof(MemoryHeader, system) == 16);
static_assert(offsetof(MemoryHeader, shape) == 32);
static_assert(sizeof(MemoryHeader) == 136 && sizeof(MemoryHeader) <= kCatalogOffset);

// The secondary index that a pool may have (section 3.3).
inline constexpr std::string_view kIndexName = "VolatileTree";

// A pool whose engine has been created or recovered. It lives until the pool is removed.
struct Pool {
  Catalog::SlotNumber slot = 0;
  std::uint64_t identifier = 0;
  Bytes limit = 0;
  std::unique_ptr<Engine> engine;
  Engine::Recovered recovered;  // actions that recovery has taken
  // The damage that was found; the pool is not served anymore. Empty if there is none.
  std::string damage;
  std::unique_ptr<index::KeyIndex> index;  // the secondary index; null if it has none
  KeyLocks locks;
  // Handles of sessions and operations under way. A pool with users cannot be removed.
  std::uint32_t users = 0;
  // True while the engine grows. It does so in steps, between which other tasks run; they must wait
  // before they use the engine.
  bool growing = false;
  WaitList grown;
  // Free bytes of the pool, for other threads to read.
  std::atomic<Bytes> free{0};

  void note_space() { free.store(engine->statistics().free, std::memory_order_relaxed); }
  // Must be called after a key has been put or erased.
  void note_put(Key key) {
    note_space();
    add_to_index(key);
  }
  void add_to_index(Key key);
  void note_erased(Key key);
};

// Opens the memory `name` of a node, or creates it if it does not exist.
std::unique_ptr<pmem::Region> open_memory(Node& node, const std::string& name,
                                          const Parameters& parameters);

class Pools {
 public:
  template <class T>
  using Result = objects::Result<T>;

  // Recovers the pools in the memory, or formats it. Throws UsageError if the memory is damaged,
  // belongs to another system, or was created with another shape.
  Pools(pmem::Region& region, const Parameters& parameters);

  // Creates a pool that may have `limit` bytes. Returns `invalid` for an impossible name or limit,
  // `exists` if there is a pool of that name, and `out_of_space` if the catalog or the memory is
  // full; then nothing has changed.
  Result<Pool*> create(std::string_view name, Bytes limit);
  // Opens a pool. Its engine is recovered when the pool is first opened after a restart, and kept.
  // Returns `failed` and the reason if the pool is damaged; it can still be removed.
  Result<Pool*> open(std::string_view name);
  // Overwrites the memory of a pool with zeros and returns it to the shard. The name is unknown
  // from the first step on; other tasks run between the steps.
  Task<Result<void>> remove(std::string_view name);
  // The pool if it has been opened since the restart, else null.
  Pool* opened(std::string_view name) const;
  const std::string& name_of(const Pool& pool) const { return catalog_.entries()[pool.slot].name; }
  // The size of the memory that a pool has been given, and its parts in the order of their offsets.
  // Adjacent regions form one part, since a value may extend over both.
  Bytes memory_of(const Pool& pool) const { return regions_.used_by(pool.identifier); }
  std::vector<ByteRange> parts_of(const Pool& pool) const;
  // Gives the pool a secondary index of all its keys, or removes it. Durable: an index is filled
  // again when its pool is opened after a restart.
  void set_index(Pool& pool, bool wanted);

  pmem::Region& region() const { return *region_; }
  const Memory& memory() const { return memory_; }
  Bytes capacity() const { return regions_.capacity(); }
  std::uint64_t count() const;  // pools that exist
  // True if recovery has undone an interrupted change of the regions.
  bool undone_region_change() const { return undone_region_change_; }
  // Marks a pool whose memory has invalid contents as damaged. It is not served from now on; one
  // line on stderr reports it.
  void close_damaged(Pool& pool, const DamagedPool& damage) const;
  // Returns an inconsistency as a phrase; empty if there is none. Opens all pools.
  std::string audit();

 private:
  void create_memory(const MemoryShape& shape);
  void recover();
  std::unique_ptr<Engine> make_engine(std::uint64_t identifier);
  Pool& add(Catalog::SlotNumber slot, std::unique_ptr<Engine> engine);
  void release_regions(std::uint64_t identifier);
  static void fill_index(Pool& pool);
  void overwrite(ByteRange range);
  // Reports on stderr which pool is damaged and how, and returns the reason for clients.
  std::string tell_damage(Catalog::SlotNumber slot, const DamagedPool& damage) const;

  pmem::Region* region_;
  Memory memory_;
  EngineKind engine_kind_;
  hstore::Shape engine_shape_;
  Catalog catalog_;
  RegionAllocator regions_;
  std::vector<std::unique_ptr<Pool>>
      open_;                         // the pool in each slot; null if not opened since the restart
  std::vector<std::string> damage_;  // for each slot, why its pool could not be opened
  bool undone_region_change_ = false;
};

}  // namespace perdura::systems::mcas
