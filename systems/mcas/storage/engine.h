// The interface of a storage engine: the primary index of a pool, together with the memory of its
// keys and values (MCAS, section 3.2: IKVStore). A shard calls it on one thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "services/objects/objects.h"
#include "systems/mcas/storage/memory.h"

namespace perdura::systems::mcas {

using objects::Key;
using objects::Value;

enum class PutOutcome : std::uint8_t {
  done,
  flushed,       // put_flushed() has done it, but it is durable only after the next drain()
  out_of_space,  // the previous value, if any, remains
  must_grow,     // nothing has changed: call grow_step() until it returns false, and put again
};

struct EngineStatistics {
  Bytes capacity = 0;  // the pool's memory, and the memory that it may still be given
  Bytes free = 0;
  std::uint64_t items = 0;
  std::uint64_t segments_added = 0;  // this and all counts below begin when the engine is opened
  std::uint64_t moved_items = 0;     // to make room for others
  std::uint64_t regions_added = 0;   // given to the pool by the region allocator
  std::uint64_t heap_regions_returned = 0;
};

class Engine {
 public:
  // The amount of repair that recovery has done.
  struct Recovered {
    std::uint64_t stale_hops = 0;     // left by an interrupted growth of the table
    std::uint64_t stale_entries = 0;  // left by any interrupted change of the table
  };

  virtual ~Engine() = default;

  // Either create() or recover() must be called first, once.
  // Creates an empty pool. Returns the offset of its root, by which it is recovered; nothing if the
  // shard has too little memory.
  virtual std::optional<Bytes> create() = 0;
  // Recovers the pool after a restart. The region allocator must have been recovered.
  virtual Recovered recover(Bytes root) = 0;

  // The range of the value in the shard's memory, valid until the next change; nothing if the key
  // does not exist.
  virtual std::optional<ByteRange> get(Key key) const = 0;
  // Prefetch for a get or put of the key that will follow after other requests: the first call
  // prefetches where that will look first, and the second one, given the result of the first, where
  // it will look next.
  virtual std::uint64_t prefetch(Key) const { return 0; }
  virtual void prefetch_further(std::uint64_t) const {}
  // Creates or overwrites a value. The change is durable when `done` is returned.
  virtual PutOutcome put(Key key, Value value) = 0;
  // The same for puts that share a fence: the change may be only `flushed`. Before the fence no one
  // may learn of it, neither that it is done nor the new value. Further changes may precede the
  // fence: whichever of them survive a failure, each key has a value that was put, or the one
  // before.
  virtual PutOutcome put_flushed(Key key, Value value) { return put(key, value); }
  virtual bool grow_step() = 0;
  // Durable when it returns. Returns false if the key does not exist.
  virtual bool erase(Key key) = 0;
  // Calls `visit(key, range of the value)` for each item, in no particular order. `visit` must not
  // use the engine.
  virtual void iterate(const std::function<void(Key, ByteRange)>& visit) const = 0;

  // Reserves memory for a value, of any length, that arrives without a copy or is computed in
  // place. Nothing refers to it yet, so it is free after a failure. Returns nothing if there is no
  // room. It belongs to the caller until it is released or becomes a value.
  virtual std::optional<ByteRange> reserve(Bytes length) = 0;
  virtual void release(ByteRange reserved) = 0;
  // As put(), for the value in this range, which the caller has flushed; it need not be durable
  // yet. The memory belongs to the engine if `done` is returned, and else still to the caller.
  virtual PutOutcome put_reserved(Key key, ByteRange value) = 0;

  virtual EngineStatistics statistics() const = 0;
  // Returns an inconsistency as a phrase; empty if there is none.
  virtual std::string audit() const = 0;
};

}  // namespace perdura::systems::mcas
