// How long messages take between two nodes.
#pragma once

#include <algorithm>

#include "platform/fabric/types.h"
#include "platform/sim/kernel/profile.h"
#include "platform/sim/kernel/resource.h"

namespace perdura::fabric::sim {

// The path between two nodes' links: the lower bandwidth, the smaller packets, the larger headers
// and the longer propagation.
inline perdura::sim::LinkProfile path_between(const perdura::sim::LinkProfile& a,
                                              const perdura::sim::LinkProfile& b) {
  return {std::min(a.bandwidth, b.bandwidth), std::max(a.propagation, b.propagation),
          std::min(a.mtu, b.mtu), std::max(a.header, b.header)};
}

// The bytes of a message, with the headers of its packets.
inline Bytes wire_bytes(const perdura::sim::LinkProfile& path, Bytes bytes) {
  const Bytes packets = bytes == 0 ? 1 : (bytes + path.mtu - 1) / path.mtu;
  return bytes + packets * path.header;
}

inline Picoseconds wire_time(const perdura::sim::LinkProfile& path, Bytes bytes) {
  return perdura::sim::transfer_time(wire_bytes(path, bytes), path.bandwidth);
}

inline Picoseconds first_packet_time(const perdura::sim::LinkProfile& path, Bytes bytes) {
  return wire_time(path, std::min(bytes, path.mtu));
}

}  // namespace perdura::fabric::sim
