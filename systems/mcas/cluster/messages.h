// The messages of a cluster's members to those who watch them. A watcher connects with a Hello; the
// answer and every message of the connection is a Beat.
#pragma once

#include <chrono>
#include <cstdint>

#include "platform/base/units.h"

namespace perdura::systems::mcas::cluster {

inline constexpr std::uint32_t kVersion = 1;

struct Hello {
  std::uint32_t version = kVersion;
};

// The number of one life of a member, from the start of its process to its end. It is at least 1,
// and a successor's is larger; shards use the time of their start.
using Life = std::uint64_t;

struct Beat {
  Life life = 0;
  std::uint32_t leaves = 0;  // 1: the member leaves, and this is its last Beat
  std::uint32_t unused = 0;
};

struct Timing {
  Picoseconds heartbeat = std::chrono::milliseconds(50);   // the interval between two Beats
  Picoseconds patience = std::chrono::milliseconds(1000);  // without a heartbeat for this long, a
                                                           // member has failed
};

}  // namespace perdura::systems::mcas::cluster
