// How late something is in a simulation in which that is chosen: a message, a device, a thread.
#pragma once

#include <array>

#include "platform/base/units.h"
#include "platform/pmem/model/choices.h"

namespace perdura::sim {

// 0 is no delay.
inline Picoseconds choose_delay(pmem::Choices& choices) {
  constexpr std::array<Picoseconds, 3> kDelays{Picoseconds{}, Microseconds(5), Microseconds(25)};
  return kDelays[choices.choose(kDelays.size())];
}

}  // namespace perdura::sim
