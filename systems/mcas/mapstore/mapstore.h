// mapstore, the storage engine for DRAM (MCAS, section 3.2): an ordered container of the standard
// library. Keys and the index are in the process's own memory. Values are in the shard's memory, so
// that messages and direct transfers can use them, and are not flushed.
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

  // There is no root, since nothing can be recovered.
  std::optional<Bytes> create() override { return 0; }
  // The pool keeps the memory that it has been given.
  Recovered recover(Bytes root) override;

  std::optional<ByteRange> get(Key key) const override;
  PutOutcome put(Key key, Value value) override;
  bool grow_step() override { return false; }
  bool erase(Key key) override;
  // Calls `visit` in the order of keys.
  void iterate(const std::function<void(Key, ByteRange)>& visit) const override;
  std::optional<ByteRange> reserve(Bytes length) override { return heap_.reserve(length); }
  void release(ByteRange reserved) override { heap_.release(reserved); }
  PutOutcome put_reserved(Key key, ByteRange value) override;
  EngineStatistics statistics() const override;
  std::string audit() const override;

 private:
  // Makes this the value of the key, and frees the previous one.
  void refer(Key key, ByteRange value);

  Memory memory_;
  PoolHeap heap_;
  std::map<std::string, ByteRange, std::less<>> values_;
};

}  // namespace perdura::systems::mcas::mapstore
