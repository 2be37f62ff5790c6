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
  virtual ~Engine() = default;

  // Where the value is in the shard's memory, until the next change; nothing if there is no such
  // key.
  virtual std::optional<Place> get(Key key) const = 0;
  // Creates or overwrites. The change is durable when `done` is returned.
  virtual PutOutcome put(Key key, Value value) = 0;
  virtual bool grow_step() = 0;
  // Durable when it returns. False if there is no such key.
  virtual bool erase(Key key) = 0;
  // Calls `visit(key, place of the value)` for each item, in no particular order. It must not
  // use the engine.
  virtual void iterate(const std::function<void(Key, Place)>& visit) const = 0;

  virtual EngineStatistics statistics() const = 0;
  // What contradicts itself, as a phrase; empty if nothing does.
  virtual std::string audit() const = 0;
};

}  // namespace perdura::systems::mcas
