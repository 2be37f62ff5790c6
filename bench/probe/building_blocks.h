// Probes of single CPU operations, whose costs are in section [cpu] of a profile.
#pragma once

#include "bench/probe/probe.h"

namespace perdura::bench {

enum class Block : std::uint8_t {
  crc32,
  copy,
  hash,
  compare,  // a comparison of equal bytes
  store,    // a store to a cached line
  flush,    // a flush of such a line, without a fence
  fence,    // a fence with no flushes outstanding
};
std::string_view to_string(Block block);

// Returns the nanoseconds that the operation takes on `size` bytes that are in a cache, one value
// per repetition.
std::vector<double> building_block(Platform& platform, Block block, Bytes size,
                                   const Effort& effort);

// Operations whose cost has a part per byte are measured at two sizes, from which the fixed part
// and the part per byte follow.
inline constexpr Bytes kFewBytes = 64;
inline constexpr Bytes kManyBytes = 4 * KiB;
ProbeSet building_block_probes(const Effort& effort);

}  // namespace perdura::bench
