// Probes of what a core does by itself: the building blocks whose costs a profile has in [cpu].
#pragma once

#include "bench/probe/probe.h"

namespace perdura::bench {

enum class Block : std::uint8_t {
  crc32,
  copy,
  hash,
  compare,  // of equal bytes
  store,    // to a line that a cache holds
  flush,    // of such a line, without a fence
  fence,    // with nothing under way
};
std::string_view to_string(Block block);

// Nanoseconds for `size` bytes that are in a cache.
std::vector<double> building_block(Platform& platform, Block block, Bytes size,
                                   const Effort& effort);

// Those with a part per byte at two sizes, from which both parts follow.
inline constexpr Bytes kFewBytes = 64;
inline constexpr Bytes kManyBytes = 4 * KiB;
ProbeSet building_block_probes(const Effort& effort);

}  // namespace perdura::bench
