// How long messages take on a link.
#pragma once

#include <algorithm>

#include "platform/fabric/types.h"
#include "platform/sim/kernel/profile.h"
#include "platform/sim/kernel/resource.h"

namespace perdura::fabric::sim {

inline Picoseconds wire_time(const perdura::sim::Profile& profile, Bytes bytes) {
  const Bytes packets = bytes == 0 ? 1 : (bytes + profile.link.mtu - 1) / profile.link.mtu;
  return perdura::sim::transfer_time(bytes + packets * profile.link.header, profile.link.bandwidth);
}

inline Picoseconds first_packet_time(const perdura::sim::Profile& profile, Bytes bytes) {
  return wire_time(profile, std::min(bytes, profile.link.mtu));
}

}  // namespace perdura::fabric::sim
