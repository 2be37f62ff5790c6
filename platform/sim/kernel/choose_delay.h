// How late a message, a device or a thread is, in a simulation in which choices decide that.
#pragma once

#include <array>

#include "platform/base/units.h"
#include "platform/pmem/model/choices.h"

namespace perdura::sim {

// One of three delays; the first choice is no delay.
inline Picoseconds choose_delay(pmem::Choices& choices) {
  constexpr std::array<Picoseconds, 3> kDelays{Picoseconds{}, Microseconds(5), Microseconds(25)};
  return kDelays[choices.choose(kDelays.size())];
}

}  // namespace perdura::sim
