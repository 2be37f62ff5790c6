// Whether an index flushes what it stores.
#pragma once

#include <cstdint>

#include "systems/kv.h"

namespace perdura::systems::bucket_hash {

enum class Flushing : std::uint8_t {
  lines,  // stores are durable after a flush and a fence
  none,   // caches are in the persistence domain
};

// As the paper has it, unless the configuration's method of making puts durable does without.
inline Flushing flushing_of(const KvConfig& config) {
  const bool flushes = !config.put_method || config.put_method->uses(pmem::StepKind::flush);
  return flushes ? Flushing::lines : Flushing::none;
}

}  // namespace perdura::systems::bucket_hash
