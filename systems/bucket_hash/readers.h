// Whether an index maintains checks for concurrent readers.
#pragma once

#include <cstdint>

namespace perdura::systems::bucket_hash {

// Who reads an index besides the threads that change it.
enum class Readers : std::uint8_t {
  one_sided,  // clients READ it: checks let them detect concurrent changes
  none,       // nobody (local mode): checks are not maintained, only recovery computes them
};

}  // namespace perdura::systems::bucket_hash
