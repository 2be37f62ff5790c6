// The responder's side of an APPEND (fabric.h, QueuePair::append).
//
// The device takes the size from the word in memory, or from its own copy while it is still storing
// the size after an earlier APPEND. It places the data there as that of a WRITE, and then stores
// the new size: after the data, and after the sizes of earlier APPENDs. So APPENDs of several
// connections overlap in time but not in place, and whoever reads a size finds the data before it.
#include <algorithm>

#include "platform/fabric/sim/connection.h"

namespace perdura::fabric::sim {

bool Responder::process_append(Flight& flight, Time at) {
  const perdura::sim::NicProfile& nic = nic_.profile.nic;
  WorkRequest& request = flight.request;
  const Bytes length = request.local.length();
  request.remote.offset = 0;
  flight.memory =
      nic_.find(end_.address().node, request.remote, 0, rights_for(request), flight.pieces);
  if (flight.memory == nullptr || !flight.memory->appends) {
    return refuse(flight, Status::remote_access_error, at), true;
  }
  Nic::Registered& memory = *flight.memory;
  Nic::Appends& appends = *memory.appends;
  const bool is_storing = network_.engine.now() < appends.stored_at;
  const Bytes size = is_storing ? appends.size : memory.region().device_load(appends.size_word);
  if (!memory.extents->find(size, length, flight.pieces)) {
    const Bytes end = size + length;
    if (end > appends.reported) appends.faults->push({request.remote.key, end});
    appends.reported = std::max(appends.reported, end);
    return false;
  }
  request.remote.offset = size;
  flight.old_value = size;
  at = nic_.find_remote(at, request, memory, length, flight.pieces);
  place(flight, network_.remote_targets(flight, length), at);
  appends.size = size + length;
  appends.stored_at = std::max(appends.stored_at, last_placement_) + nic.pcie_write;
  memory.region().device_write(flight.known_as, appends.size_word,
                               std::as_bytes(std::span(&appends.size, 1)), {appends.stored_at, {}},
                               nic_.cause());
  last_placement_ = appends.stored_at;
  keep_busy(flight, appends.stored_at);
  accepted(flight, at);
  return true;
}

}  // namespace perdura::fabric::sim
