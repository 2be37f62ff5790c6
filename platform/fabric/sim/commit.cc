// The responder's side of a commit (fabric.h, QueuePair::commit).
//
// The device notes what operations change through a registration that peers may commit, as ranges
// of the registration. A commit waits until all that has been noted is in memory, whichever
// connection it came over, and writes back what these ranges are mapped to at that moment: data
// that the owner has unmapped meanwhile is the owner's, and its memory may be another file's.
#include <algorithm>

#include "platform/fabric/sim/connection.h"

namespace perdura::fabric::sim {

// `length` bytes from the operation's address on will have been changed at `placed`.
void Responder::note_dirty(const Flight& flight, Bytes length, Time placed) {
  if (flight.memory == nullptr || !flight.memory->may_be_committed()) [[likely]]
    return;
  const Bytes at = flight.request.remote.offset;
  flight.memory->dirty.add({at, at + length, placed});
}

// The device has accepted a WRITE or APPEND, whose placement it has begun.
void Responder::accepted(Flight& flight, Time at) {
  const Time all_there = std::max(at, flight.last_arrival + nic_.profile.nic.processing);
  if (flight.request.flags.commit) [[unlikely]]
    return begin_commit(flight, all_there);
  acknowledge(flight, all_there);
}

// Like a FLUSH, it pushes the earlier placements of its connection in front of it; for those of
// others it waits.
void Responder::begin_commit(Flight& flight, Time at) {
  const Nic::Registered& memory = *flight.memory;
  at = std::max(behind_earlier<WorkKind::flush>(at), memory.dirty.placed());
  if (memory.appends) at = std::max(at, memory.appends->stored_at);
  last_push_ = at;
  execute_at(flight, at + nic_.profile.nic.pcie_read);
}

void Responder::execute_commit(Flight& flight) {
  Nic::Registered& memory = *flight.memory;
  pmem::sim::SimRegion& region = memory.region();
  const Time now = network_.engine.now();
  if (flight.observed) [[unlikely]]
    observe_execution(flight, {&region, 0, 0}, now);
  flight.pieces.clear();
  for (const DirtyRange& range : memory.dirty.all()) {
    memory.extents->add_mapped(range.begin, range.end, flight.pieces);
  }
  if (memory.appends) flight.pieces.push_back({memory.appends->size_word, kWord, 0});
  for (const RegionPiece& piece : flight.pieces) {
    region.device_commit(flight.committed_as, piece.offset, piece.length);
  }
  if (is_posted(flight.request.opcode)) {
    acknowledge(flight, now);
  } else {
    respond(flight);
  }
  // To the persistence model nothing is durable before a completion tells so. Until this one does,
  // the next commit covers the same ranges.
  const bool is_told = flight.from->journal() == nullptr ||
                       (flight.known == Flight::Known::completes && flight.operation != nullptr);
  if (is_told) memory.dirty.drop_placed(now);
}

}  // namespace perdura::fabric::sim
