// The interface of a storage engine: the primary index of a pool, together with the memory of its
// keys and values (MCAS, section 3.2: IKVStore). A shard calls it on one thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "services/kv/kv.h"
#include "systems/mcas/storage/memory.h"

namespace perdura::systems::mcas {

enum class PutOutcome : std::uint8_t {
  done,
  flushed,       // of put_flushed(): done, and durable with the next drain() of the memory
  out_of_space,  // the previous value, if there is one, remains
  must_grow,     // nothing has happened: call grow_step() until it returns false, and put again
};

struct EngineStatistics {
  Bytes capacity = 0;  // of the pool's memory, and of what it may still be given
  Bytes free = 0;
  std::uint64_t items = 0;
  std::uint64_t segments_added = 0;  // since it was opened, as all counts below
  std::uint64_t moved_items = 0;     // to make room for others
  std::uint64_t regions_added = 0;   // by the region allocator, to the pool's memory
  std::uint64_t heap_regions_returned = 0;
};

class Engine {
 public:
  // What recovery has found to do.
  struct Recovered {
    std::uint64_t stale_hops = 0;     // left by an interrupted growth of the table
    std::uint64_t stale_entries = 0;  // left by any interrupted change of the table
  };

  virtual ~Engine() = default;

  // Either create() or recover() is called first, once.
  // Makes an empty pool. Returns where its root is, by which it is recovered; nothing if the shard
  // has too little memory.
  virtual std::optional<Bytes> create() = 0;
  // After a restart. The region allocator has been recovered.
  virtual Recovered recover(Bytes root) = 0;

  // Where the value is in the shard's memory, until the next change; nothing if there is no such
  // key.
  virtual std::optional<Place> get(Key key) const = 0;
  // For a get or put of the key that follows when others have been executed: has the caches fetch
  // where it will look first, and then, told what the first call has returned, where next.
  virtual std::uint64_t prefetch(Key) const { return 0; }
  virtual void prefetch_further(std::uint64_t) const {}
  // Creates or overwrites. The change is durable when `done` is returned.
  virtual PutOutcome put(Key key, Value value) = 0;
  // The same for puts that share a fence: the change may be `flushed` only. Nobody may be told of
  // it before the fence, neither that it is done nor what there is now. Any further changes may
  // come before the fence: whatever survives a failure of some of them, each key has a value that
  // was put, or the one before.
  virtual PutOutcome put_flushed(Key key, Value value) { return put(key, value); }
  virtual bool grow_step() = 0;
  // Durable when it returns. False if there is no such key.
  virtual bool erase(Key key) = 0;
  // Calls `visit(key, place of the value)` for each item, in no particular order. It must not
  // use the engine.
  virtual void iterate(const std::function<void(Key, Place)>& visit) const = 0;

  // Memory for a value that arrives without a copy or is computed in place, of any length: nothing
  // refers to it yet, so after a failure it is free. Nothing if there is no room. It belongs to the
  // caller until it is given back or becomes a value.
  virtual std::optional<Place> reserve(Bytes length) = 0;
  virtual void release(Place reserved) = 0;
  // As put(), of the value that lies there, which the caller has flushed; it need not be durable
  // yet. It belongs to the engine from `done` on, and to the caller after any other outcome.
  virtual PutOutcome put_reserved(Key key, Place value) = 0;

  virtual EngineStatistics statistics() const = 0;
  // What contradicts itself, as a phrase; empty if nothing does.
  virtual std::string audit() const = 0;
};

}  // namespace perdura::systems::mcas
