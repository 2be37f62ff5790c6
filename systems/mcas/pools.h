// The persistent memory of a shard, and the pools in it (MCAS, section 3: a shard manages a set of
// pools, which are the boundary of access rights and of memory).
//
// The header's checksum covers what never changes: all but the magic, the version and the checksum
// itself. The magic is written last when a shard's memory is created, so memory whose magic is 0 is
// that of a creation which was interrupted, and is created again.
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

// All that memory of another shape would be misread with.
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

// A pool whose engine has been made. It lives until the pool is removed.
struct Pool {
  Catalog::SlotNumber slot = 0;
  std::uint64_t identifier = 0;
  Bytes limit = 0;
  std::unique_ptr<Engine> engine;
  Engine::Recovered recovered;  // what recovery has found to do
  std::string damage;  // what was found to be damaged: it is not served any more; empty if nothing
  std::unique_ptr<index::KeyIndex> index;  // the secondary index; null if it has none
  KeyLocks locks;
  // Handles of sessions, and operations under way. A pool that has any cannot be removed.
  std::uint32_t users = 0;
  // An engine that grows does so in steps, between which other tasks run: they must wait before
  // they use it.
  bool growing = false;
  WaitList grown;
  // What is free in it, for other threads.
  std::atomic<Bytes> free{0};

  void note_space() { free.store(engine->statistics().free, std::memory_order_relaxed); }
  // To be called when a key has been put, or erased.
  void note_put(Key key) {
    note_space();
    add_to_index(key);
  }
  void add_to_index(Key key);
  void note_erased(Key key);
};

// The memory `name` of a node, which is created if it is not there.
std::unique_ptr<pmem::Region> open_memory(Node& node, const std::string& name,
                                          const Parameters& parameters);

class Pools {
 public:
  template <class T>
  using Result = objects::Result<T>;

  // Recovers what is in the memory, or makes it anew. Throws UsageError if it is damaged, belongs
  // to another system or was created for another shape.
  Pools(pmem::Region& region, const Parameters& parameters);

  // A pool that may have `limit` bytes. `exists` if there is one of that name; `out_of_space` if
  // the catalog or the memory is full, then nothing has changed.
  Result<Pool*> create(std::string_view name, Bytes limit);
  // The engine of a pool is recovered when it is first opened after a restart, and kept. `failed`
  // if the pool is damaged, with what is wrong; then it can be removed.
  Result<Pool*> open(std::string_view name);
  // Overwrites the memory of a pool with zeros and gives it back to the shard. From the first step
  // on there is no pool of that name any more; other tasks run between the steps.
  Task<Result<void>> remove(std::string_view name);
  // The pool if it has been opened since the restart, else null.
  Pool* opened(std::string_view name) const;
  const std::string& name_of(const Pool& pool) const { return catalog_.entries()[pool.slot].name; }
  // How much memory a pool has been given, and its parts, in the order of their offsets. Regions
  // beside each other are one part: a value may lie in both.
  Bytes memory_of(const Pool& pool) const { return regions_.used_by(pool.identifier); }
  std::vector<Place> parts_of(const Pool& pool) const;
  // Gives the pool a secondary index, of all its keys, or takes it away. Durable: an index is
  // filled again when its pool is opened after a restart.
  void set_index(Pool& pool, bool wanted);

  pmem::Region& region() const { return *region_; }
  const Memory& memory() const { return memory_; }
  Bytes capacity() const { return regions_.capacity(); }
  std::uint64_t count() const;  // of pools that exist
  // Whether recovery has found a change of the regions to undo.
  bool undone_region_change() const { return undone_region_change_; }
  // The pool's memory says what cannot be: from now on it is not served, and a line on stderr says
  // so once.
  void close_damaged(Pool& pool, const DamagedPool& damage) const;
  // What contradicts itself, as a phrase; empty if nothing does. Opens all pools.
  std::string audit();

 private:
  void create_memory(const MemoryShape& shape);
  void recover();
  std::unique_ptr<Engine> make_engine(std::uint64_t identifier);
  Pool& add(Catalog::SlotNumber slot, std::unique_ptr<Engine> engine);
  void release_regions(std::uint64_t identifier);
  static void fill_index(Pool& pool);
  void overwrite(Place place);
  // Says on stderr which pool is damaged and how, and returns what clients are told.
  std::string tell_damage(Catalog::SlotNumber slot, const DamagedPool& damage) const;

  pmem::Region* region_;
  Memory memory_;
  EngineKind engine_kind_;
  hstore::Shape engine_shape_;
  Catalog catalog_;
  RegionAllocator regions_;
  std::vector<std::unique_ptr<Pool>> open_;  // by slot; null if not opened since the restart
  std::vector<std::string> damage_;          // by slot; why it could not be opened
  bool undone_region_change_ = false;
};

}  // namespace perdura::systems::mcas
