// Accesses of peers through registrations of extents (registration.h).
#include <algorithm>
#include <utility>

#include "platform/fabric/tcp/endpoint.h"
#include "platform/fabric/tcp/queue_pair.h"

namespace perdura::fabric::tcp {

// Takes the next part of a payload, and carries out the request when it is the last one. A payload
// of one part needs no copy.
void TcpQueuePair::take_for_extents(Arrival& arrival, std::span<const std::byte> bytes) {
  const std::size_t length = arrival.frame.payload();
  if (bytes.size() < length) {
    arrival.begun.insert(arrival.begun.end(), bytes.begin(), bytes.end());
    if (arrival.begun.size() < length) return;
    bytes = arrival.begun;
  }
  if (place_whole(arrival, bytes)) return;
  if (arrival.begun.empty()) arrival.begun.assign(bytes.begin(), bytes.end());
  hold();
  held_.back().payload = std::move(arrival.begun);
  wait_for_memory(held_.back(), arrival.memory);
}

// Carries out a WRITE or an APPEND, all of whose data has arrived, or refuses it. Returns false,
// and reports the range fault, if an APPEND must wait for memory.
bool TcpQueuePair::place_whole(Arrival& arrival, std::span<const std::byte> data) {
  Registration& memory = *arrival.memory;
  const bool appends = arrival.frame.kind == FrameKind::append;
  const auto mapping = memory.mapping.lock();
  if (mapping == nullptr) {
    refuse(Status::remote_access_error);
    return true;
  }
  const Bytes at = appends ? memory.view.load(memory.appends->size_word) : arrival.frame.offset;
  if (!memory.extents->find(at, data.size(), found_)) {
    if (!appends) {
      refuse(Status::remote_access_error);
      return true;
    }
    const Bytes end = at + data.size();
    Bytes& reported = memory.appends->reported;
    if (end > reported) memory.appends->faults->push({{arrival.frame.key}, end});
    reported = std::max(reported, end);
    return false;
  }
  for (auto rest = data; const RegionPiece& piece : found_) {
    memory.view.write(piece.offset, rest.first(piece.length));
    rest = rest.subspan(piece.length);
  }
  if (appends) {
    if (!data.empty()) memory.view.store(memory.appends->size_word, at + data.size());
    arrival.placed_at = at;
  }
  endpoint_.stored_ |= !data.empty();
  return true;
}

void TcpQueuePair::wait_for_memory(Held& held, std::shared_ptr<Registration> memory) {
  held.changes = memory->changes;
  held.lacking = std::move(memory);
}

// Adds the answer to a READ to the outgoing bytes, all of it at once. Returns false, and adds a
// refusal instead, if the READ touches a hole.
bool TcpQueuePair::add_answer(const Outgoing& answer) {
  const Registration& memory = *answer.memory;
  const auto mapping = memory.mapping.lock();
  if (mapping == nullptr || !memory.extents->find(answer.at, answer.frame.length, found_)) {
    add_frame(out_, {.kind = FrameKind::acknowledgment,
                     .status = static_cast<std::uint32_t>(Status::remote_access_error)});
    return false;
  }
  add_frame(out_, answer.frame);
  const std::size_t before = out_.size();
  out_.resize(before + answer.frame.length);
  for (auto rest = std::span(out_).subspan(before); const RegionPiece& piece : found_) {
    memory.view.read(piece.offset, rest.first(piece.length));
    rest = rest.subspan(piece.length);
  }
  return true;
}

}  // namespace perdura::fabric::tcp
