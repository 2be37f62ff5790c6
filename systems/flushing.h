// How a system's server makes its own stores to persistent memory durable.
#pragma once

#include <cstdint>

#include "services/kv/kv.h"

namespace perdura::systems {

enum class Flushing : std::uint8_t {
  lines,  // stores are durable after a flush and a fence
  none,   // the caches are in the persistence domain: a fence is enough
};

// Flushes as the paper does, unless the configured method of making puts durable has no flush.
inline Flushing flushing_of(const kv::KvConfig& config) {
  const bool flushes = !config.put_method || config.put_method->uses(pmem::StepKind::flush);
  return flushes ? Flushing::lines : Flushing::none;
}

}  // namespace perdura::systems
