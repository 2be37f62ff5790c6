// mapstore, the storage engine for DRAM (MCAS, section 3.2): an ordered container of the standard
// library. Keys and the index are in the process' own memory. Values lie in the shard's memory,
// from which messages and direct transfers take them, and are not flushed.
//
// Nothing outlives a restart: recover() finds an empty pool.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "systems/mcas/storage/engine.h"
#include "systems/mcas/storage/pool_heap.h"

namespace perdura::systems::mcas::mapstore {

class Mapstore final : public Engine {
 public:
  Mapstore(Memory memory, RegionAllocator& regions, std::uint64_t pool,
           const Heap::Geometry& geometry)
      : memory_(memory), heap_(regions, pool, geometry) {}

  // There is nothing to recover it by: the root is 0.
  std::optional<Bytes> create() override { return 0; }
  // The memory that the pool has remains its own.
  Recovered recover(Bytes root) override;

  std::optional<Place> get(Key key) const override;
  PutOutcome put(Key key, Value value) override;
  bool grow_step() override { return false; }
  bool erase(Key key) override;
  // In the order of keys.
  void iterate(const std::function<void(Key, Place)>& visit) const override;
  std::optional<Place> reserve(Bytes length) override { return heap_.reserve(length); }
  void release(Place reserved) override { heap_.release(reserved); }
  PutOutcome put_reserved(Key key, Place value) override;
  EngineStatistics statistics() const override;
  std::string audit() const override;

 private:
  // Gives the key this value, and frees the one that it had.
  void refer(Key key, Place value);

  Memory memory_;
  PoolHeap heap_;
  std::map<std::string, Place, std::less<>> values_;
};

}  // namespace perdura::systems::mcas::mapstore
