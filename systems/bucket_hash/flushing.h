// What an index does for durability and for its readers.
#pragma once

#include <cstdint>

#include "services/kv/kv.h"

namespace perdura::systems::bucket_hash {

enum class Flushing : std::uint8_t {
  lines,  // stores are durable after a flush and a fence
  none,   // caches are in the persistence domain
};

// Who reads an index besides those who change it.
enum class Readers : std::uint8_t {
  one_sided,  // clients, in its memory: checks show them what has changed while they read
  none,       // nobody, as in local mode: checks are not kept, until the index is next recovered
};

// As the paper has it, unless the configuration's method of making puts durable does without.
inline Flushing flushing_of(const KvConfig& config) {
  const bool flushes = !config.put_method || config.put_method->uses(pmem::StepKind::flush);
  return flushes ? Flushing::lines : Flushing::none;
}

}  // namespace perdura::systems::bucket_hash
