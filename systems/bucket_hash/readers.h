// Selects whether an index maintains checks for concurrent readers.
#pragma once

#include <cstdint>

namespace perdura::systems::bucket_hash {

// The readers of an index other than the threads that change it.
enum class Readers : std::uint8_t {
  one_sided,  // clients READ it: checks let them detect concurrent changes
  none,       // no readers (local mode): checks are not maintained, only recovery computes them
};

}  // namespace perdura::systems::bucket_hash
