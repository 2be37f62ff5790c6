// How an index makes its stores durable, and whether it maintains checks for concurrent readers.
#pragma once

#include <cstdint>

#include "services/kv/kv.h"

namespace perdura::systems::bucket_hash {

enum class Flushing : std::uint8_t {
  lines,  // stores are durable after a flush and a fence
  none,   // the caches are in the persistence domain: a fence is enough
};

// Who reads an index besides the threads that change it.
enum class Readers : std::uint8_t {
  one_sided,  // clients READ it: checks let them detect concurrent changes
  none,       // nobody (local mode): checks are not maintained, only recovery computes them
};

// Flushes as the paper does, unless the configured method of making puts durable has no flush.
inline Flushing flushing_of(const KvConfig& config) {
  const bool flushes = !config.put_method || config.put_method->uses(pmem::StepKind::flush);
  return flushes ? Flushing::lines : Flushing::none;
}

}  // namespace perdura::systems::bucket_hash
