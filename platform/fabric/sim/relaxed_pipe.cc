#include "platform/fabric/sim/relaxed_pipe.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "platform/fabric/sim/connection.h"

namespace perdura::fabric::sim {

namespace {

using Kind = RelaxedStep::Kind;

bool is_message(Opcode opcode) {
  return opcode == Opcode::write_with_immediate || opcode == Opcode::send;
}

bool is_supported(const WorkRequest& request, const perdura::sim::NicProfile& nic) {
  if (request.opcode == Opcode::append || commits(request)) return false;
  if (request.opcode == Opcode::atomic_write) return nic.atomic_write;
  if (request.opcode != Opcode::flush) return true;
  return request.placement == Placement::persistence ? nic.flush_persistence : nic.flush;
}

Bytes length_at_responder(const WorkRequest& request) {
  if (request.opcode == Opcode::flush) return request.flush_length;
  return is_atomic(request.opcode) ? kWord : request.local.length();
}

// Calls `visit(region, offset, bytes)` for the memory of the targets that `part`, which starts
// `begin` bytes into them, falls on.
template <class Visit>
void for_each_piece(const Targets& targets, Bytes begin, std::span<std::byte> part, Visit visit) {
  targets.for_each([&](const Target& target) {
    if (begin >= target.length) {
      begin -= target.length;
      return;
    }
    const Bytes bytes = std::min<Bytes>(target.length - begin, part.size());
    if (bytes == 0) return;
    visit(*target.region, target.offset + begin, part.first(bytes));
    part = part.subspan(bytes);
    begin = 0;
  });
}

std::span<std::byte> part_of(Flight& flight, Bytes part, std::uint32_t number) {
  const Bytes begin = std::min<Bytes>(part * number, flight.payload.size());
  return std::span(flight.payload)
      .subspan(begin, std::min<Bytes>(part, flight.payload.size() - begin));
}

}  // namespace

// Properties that hold for all operations before a given one.
struct RelaxedPipe::Earlier {
  bool fetched = true;    // WRITEs and SENDs
  bool put_back = true;   // READs
  bool reported = true;   // messages
  bool completed = true;  // all operations
  bool unfenced = true;   // the operations that a fence waits for have completed
  std::array<bool, kWorkKinds.size()> effective{true, true, true, true};  // those of each kind
  std::uint32_t going = 0;                                                // not completed

  // Returns true if the next operation, which is of this kind, may take effect at the responder.
  bool lets_execute(WorkKind next) const {
    return std::all_of(kWorkKinds.begin(), kWorkKinds.end(), [&](WorkKind kind) {
      return effective[static_cast<std::size_t>(kind)] || order_of(kind, next) != Order::kept;
    });
  }

  void add(const Posted& posted) {
    const WorkKind kind = kind_of(posted.flight->request.opcode);
    const bool complete = posted.completed;
    if (kind == WorkKind::posted) {
      fetched = fetched && posted.fetched == posted.all();
      reported = reported && (posted.reported || !posted.needs_report);
    } else if (kind == WorkKind::read) {
      put_back = put_back && posted.put_back == posted.all();
    }
    bool& all_effective = effective[static_cast<std::size_t>(kind)];
    all_effective = all_effective && RelaxedPipe::effective(posted);
    unfenced = unfenced && (complete || !fence_waits_for(kind));
    completed = completed && complete;
    if (!complete) ++going;
  }
};

void RelaxedStep::take() const { pipe->take(*this); }

RelaxedPipe::~RelaxedPipe() = default;

void RelaxedPipe::post(Flight& flight) {
  if (flight.request.flags.inlined) {
    // The CPU copies the data, and sees its own stores.
    flight.payload.resize(flight.request.local.length());
    Bytes at = 0;
    for (const LocalBuffer& piece : flight.request.local.all()) {
      model_of(*piece.region)
          .read(piece.offset, std::span(flight.payload).subspan(at, piece.length));
      at += piece.length;
    }
  }
  if (SimThread::running() != &end_.thread()) return enter(flight);
  end_.thread().store_buffer().push({nullptr, count_, {}, [this, &flight] { enter(flight); }});
}

void RelaxedPipe::enter(Flight& flight) {
  if (!end_.connected()) {
    if (flight.operation != nullptr) flight.operation->complete(Status::flushed);
    return end_.network().release(flight);
  }
  Posted posted;
  posted.flight = &flight;
  posted.number = count_++;
  const Opcode opcode = flight.request.opcode;
  if (is_posted(opcode) || opcode == Opcode::read) {
    const Bytes bytes = flight.request.local.length();
    const Bytes lines = std::max<Bytes>(1, (bytes + kCacheLine - 1) / kCacheLine);
    posted.part = (lines + kMostParts - 1) / kMostParts * kCacheLine;
    posted.parts =
        static_cast<std::uint32_t>(std::max<Bytes>(1, (bytes + posted.part - 1) / posted.part));
    flight.payload.resize(bytes);
  }
  if (flight.request.flags.inlined) posted.fetched = posted.all();
  posted.needs_report = is_message(opcode);
  posted_.push_back(posted);
}

void RelaxedPipe::list(std::vector<RelaxedStep>& steps) {
  Earlier earlier;
  for (std::uint32_t at = 0; at < posted_.size(); ++at) {
    const Posted& posted = posted_[at];
    const WorkRequest& request = posted.flight->request;
    // The device starts operations in order; one that waits holds up all later ones.
    if (request.flags.fenced && !earlier.unfenced) return;
    if (earlier.going >= end_.requester().send_depth()) return;
    if (is_posted(request.opcode)) {
      list_posted(posted, at, earlier, steps);
    } else if (request.opcode == Opcode::read) {
      list_read(posted, at, earlier, steps);
    } else {
      list_non_posted(posted, at, earlier, steps);
    }
    earlier.add(posted);
  }
}

void RelaxedPipe::list_posted(const Posted& posted, std::uint32_t at, const Earlier& earlier,
                              std::vector<RelaxedStep>& steps) const {
  const auto self = const_cast<RelaxedPipe*>(this);
  for (std::uint32_t part = 0; part < posted.parts; ++part) {
    const Parts bit = Parts{1} << part;
    if ((posted.fetched & bit) == 0) {
      if (earlier.fetched) steps.push_back({self, at, part, Kind::fetch});
    } else if ((posted.placed & bit) == 0 && earlier.lets_execute(WorkKind::posted) &&
               admissible(posted)) {
      steps.push_back({self, at, part, Kind::place});
    }
  }
  if (posted.placed == posted.all() && posted.needs_report && !posted.reported &&
      earlier.reported) {
    steps.push_back({self, at, 0, Kind::report});
  }
  // A completion means that the responder's device has the operation, and says nothing of its
  // memory.
  const bool taken = !is_message(posted.flight->request.opcode) || posted.admitted;
  if (posted.fetched == posted.all() && taken && earlier.completed && !posted.completed) {
    steps.push_back({self, at, 0, Kind::complete});
  }
}

void RelaxedPipe::list_read(const Posted& posted, std::uint32_t at, const Earlier& earlier,
                            std::vector<RelaxedStep>& steps) const {
  const auto self = const_cast<RelaxedPipe*>(this);
  for (std::uint32_t part = 0; part < posted.parts; ++part) {
    const Parts bit = Parts{1} << part;
    if ((posted.sampled & bit) == 0) {
      if (earlier.lets_execute(WorkKind::read)) {
        steps.push_back({self, at, part, Kind::sample});
      }
    } else if ((posted.put_back & bit) == 0 && earlier.put_back) {
      steps.push_back({self, at, part, Kind::put_back});
    }
  }
  if (posted.put_back == posted.all() && earlier.completed && !posted.completed) {
    steps.push_back({self, at, 0, Kind::complete});
  }
}

void RelaxedPipe::list_non_posted(const Posted& posted, std::uint32_t at, const Earlier& earlier,
                                  std::vector<RelaxedStep>& steps) const {
  const auto self = const_cast<RelaxedPipe*>(this);
  if (posted.sampled == 0) {
    const WorkKind kind = kind_of(posted.flight->request.opcode);
    const bool locked = kind == WorkKind::atomic && end_.peer().nic().in_atomic;
    if (earlier.lets_execute(kind) && !locked) {
      steps.push_back({self, at, 0, Kind::sample});
    }
  } else if (posted.placed == 0) {
    steps.push_back({self, at, 0, Kind::place});
  } else if (earlier.completed && !posted.completed) {
    steps.push_back({self, at, 0, Kind::complete});
  }
}

// A message waits for a receive buffer without a limit.
bool RelaxedPipe::admissible(const Posted& posted) const {
  if (posted.admitted || !is_message(posted.flight->request.opcode)) return true;
  // The operation will be refused. The receive queue may be gone.
  if (!end_.peer().connected()) return true;
  const SimReceiveQueue* const queue = end_.peer().responder().receive_queue();
  return queue != nullptr && !queue->empty();
}

// The responder's device looks up the memory or the receive buffer of the operation.
void RelaxedPipe::admit(Posted& posted) {
  if (posted.admitted) return;
  posted.admitted = true;
  Flight& flight = *posted.flight;
  const WorkRequest& request = flight.request;
  End& peer = end_.peer();
  if (!peer.connected()) return refuse(posted, Status::retry_exceeded);
  if (!is_supported(request, end_.nic().profile.nic)) return refuse(posted, Status::unsupported);
  if (request.opcode != Opcode::send) {
    flight.memory =
        peer.nic().find(peer.address().node, request.remote, length_at_responder(request),
                        right_for(request.opcode), flight.pieces);
    const bool aligned = !is_atomic(request.opcode) || request.remote.offset % kWord == 0;
    if (flight.memory == nullptr || !aligned) return refuse(posted, Status::remote_access_error);
  }
  if (!is_message(request.opcode)) return;
  const SimReceiveQueue::Posted& receive = peer.responder().receive_queue()->take();
  posted.buffer = receive.buffer;
  posted.buffer_id = receive.id;
  if (request.opcode == Opcode::send && request.local.length() > receive.buffer.length()) {
    refuse(posted, Status::message_too_long);
  }
}

void RelaxedPipe::refuse(Posted& posted, Status status) const {
  posted.flight->status = status;
  posted.fetched = posted.placed = posted.sampled = posted.put_back = posted.all();
  posted.needs_report = false;
}

void RelaxedPipe::fetch(Posted& posted, std::uint32_t part) const {
  Flight& flight = *posted.flight;
  const std::span<std::byte> data = part_of(flight, posted.part, part);
  const Targets targets = end_.network().local_targets(flight.request.local, flight.payload.size());
  const pmem::sim::LineTimes now{end_.network().engine.now(), {}};
  for_each_piece(targets, posted.part * part, data,
                 [&](pmem::sim::SimRegion& region, Bytes offset, std::span<std::byte> bytes) {
                   region.begin_device_read(offset, bytes.size(), now);
                   region.end_device_read(offset, bytes, now);
                 });
  posted.fetched |= Parts{1} << part;
}

void RelaxedPipe::place(Posted& posted, std::uint32_t part) {
  admit(posted);
  Flight& flight = *posted.flight;
  if (flight.status != Status::success) return;
  const WorkRequest& request = flight.request;
  End& peer = end_.peer();
  posted.placed |= Parts{1} << part;
  if (request.opcode == Opcode::flush) return;
  if (is_atomic(request.opcode)) {
    const Target word = end_.network().remote_targets(flight, kWord).first;
    const bool swaps =
        request.opcode != Opcode::compare_and_swap || flight.old_value == request.expected;
    const std::uint64_t value = request.opcode == Opcode::fetch_and_add
                                    ? flight.old_value + request.operand
                                    : request.operand;
    if (swaps) word.region->device_store(flight.known_as, word.offset, value);
    if (request.opcode == Opcode::atomic_write) flight.old_value = 0;
    peer.nic().in_atomic = false;
    return;
  }
  const Bytes length = flight.payload.size();
  const Targets targets = request.opcode == Opcode::send
                              ? end_.network().local_targets(posted.buffer, length)
                              : end_.network().remote_targets(flight, length);
  for_each_piece(
      targets, posted.part * part, part_of(flight, posted.part, part),
      [&](pmem::sim::SimRegion& region, Bytes offset, std::span<std::byte> bytes) {
        region.device_write(flight.known_as, offset, bytes, {end_.network().engine.now(), {}});
      });
}

void RelaxedPipe::sample(Posted& posted, std::uint32_t part) {
  admit(posted);
  Flight& flight = *posted.flight;
  if (flight.status != Status::success) return;
  const WorkRequest& request = flight.request;
  End& peer = end_.peer();
  posted.sampled |= Parts{1} << part;
  if (request.opcode == Opcode::flush) {
    posted.placed = posted.all();
  } else if (request.opcode == Opcode::atomic_write) {
    place(posted, part);
  } else if (request.opcode != Opcode::read) {
    const Target word = end_.network().remote_targets(flight, kWord).first;
    flight.old_value = word.region->device_load(word.offset);
    peer.nic().in_atomic = true;
  } else {
    const pmem::sim::LineTimes now{end_.network().engine.now(), {}};
    const Targets targets = end_.network().remote_targets(flight, flight.payload.size());
    for_each_piece(targets, posted.part * part, part_of(flight, posted.part, part),
                   [&](pmem::sim::SimRegion& region, Bytes offset, std::span<std::byte> bytes) {
                     region.begin_device_read(offset, bytes.size(), now);
                     region.end_device_read(offset, bytes, now);
                   });
  }
}

void RelaxedPipe::put_back(Posted& posted, std::uint32_t part) const {
  Flight& flight = *posted.flight;
  posted.put_back |= Parts{1} << part;
  // If the operation is no longer awaited, its memory may be gone.
  if (flight.operation == nullptr) return;
  const Targets targets = end_.network().local_targets(flight.request.local, flight.payload.size());
  for_each_piece(targets, posted.part * part, part_of(flight, posted.part, part),
                 [](pmem::sim::SimRegion& region, Bytes offset, std::span<std::byte> bytes) {
                   region.answer_arrived(offset, bytes);
                 });
}

void RelaxedPipe::report(Posted& posted) const {
  const WorkRequest& request = posted.flight->request;
  Responder& responder = end_.peer().responder();
  posted.reported = true;
  if (!responder.reports()) return;
  ReceiveCompletion received{responder.queue_pair(), Status::success,  std::nullopt,
                             posted.buffer.first(),  posted.buffer_id, 0};
  if (request.opcode == Opcode::send) {
    received.length = request.local.length();
    received.buffer.length = std::min(received.length, received.buffer.length);
  } else {
    received.buffer.length = 0;
    received.immediate = request.immediate;
  }
  responder.report(received);
}

void RelaxedPipe::complete(Posted& posted) const {
  Flight& flight = *posted.flight;
  posted.completed = true;
  const SimThread::CompletionArrives completion_arrives(end_.thread());
  if (flight.operation == nullptr) return;
  RdmaOperation& operation = *std::exchange(flight.operation, nullptr);
  operation.complete(flight.status, flight.old_value);
}

void RelaxedPipe::take(const RelaxedStep& step) {
  Posted& posted = posted_[step.operation];
  switch (step.kind) {
    case Kind::fetch:
      fetch(posted, step.part);
      break;
    case Kind::place:
      place(posted, step.part);
      break;
    case Kind::sample:
      sample(posted, step.part);
      break;
    case Kind::put_back:
      put_back(posted, step.part);
      break;
    case Kind::report:
      report(posted);
      break;
    case Kind::complete: {
      admit(posted);
      complete(posted);
      const Status status = posted.flight->status;
      if (status != Status::success) {
        end_.enter_error();
        if (status != Status::retry_exceeded) end_.peer().enter_error();
      }
      break;
    }
  }
  forget_done();
}

bool RelaxedPipe::effective(const Posted& posted) {
  const Opcode opcode = posted.flight->request.opcode;
  if (opcode == Opcode::read) return posted.sampled == posted.all();
  return posted.placed == posted.all();
}

bool RelaxedPipe::done(const Posted& posted) {
  return posted.completed && effective(posted) && (posted.reported || !posted.needs_report);
}

void RelaxedPipe::forget_done() {
  for (const Posted& posted : posted_) {
    if (done(posted)) end_.network().release(*posted.flight);
  }
  std::erase_if(posted_, [](const Posted& posted) { return done(posted); });
}

void RelaxedPipe::flush() {
  for (Posted& posted : posted_) {
    const bool left = is_posted(posted.flight->request.opcode) && posted.fetched == posted.all();
    if (!left) {
      if (posted.sampled != 0 && posted.placed == 0 && is_atomic(posted.flight->request.opcode)) {
        end_.peer().nic().in_atomic = false;
      }
      refuse(posted, Status::flushed);
    }
    RdmaOperation* const operation = std::exchange(posted.flight->operation, nullptr);
    if (operation != nullptr && end_.state() == End::State::error) {
      operation->complete(Status::flushed);
    }
    posted.completed = true;
  }
  forget_done();
}

void RelaxedPipe::finish() {
  for (Posted& posted : posted_) {
    if (!posted.admitted) continue;
    const Opcode opcode = posted.flight->request.opcode;
    for (std::uint32_t part = 0; part < posted.parts; ++part) {
      const Parts bit = Parts{1} << part;
      if (opcode == Opcode::read) {
        if ((posted.sampled & bit) == 0) sample(posted, part);
      } else if ((posted.placed & bit) == 0 &&
                 (!is_posted(opcode) || (posted.fetched & bit) != 0)) {
        place(posted, part);
      }
    }
    // Parts of a long message may not have left yet.
    if (!effective(posted)) refuse(posted, Status::retry_exceeded);
  }
}

void RelaxedPipe::append_state(std::string& state) const {
  const auto append = [&state](const auto& value) {
    state.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  append(count_);
  for (const Posted& posted : posted_) {
    const Flight& flight = *posted.flight;
    append(posted.number);
    append(posted.fetched);
    append(posted.placed);
    append(posted.sampled);
    append(posted.put_back);
    state += static_cast<char>('a' + (posted.admitted ? 1 : 0) + (posted.reported ? 2 : 0) +
                               (posted.completed ? 4 : 0));
    append(flight.old_value);
    state.append(reinterpret_cast<const char*>(flight.payload.data()), flight.payload.size());
  }
}

}  // namespace perdura::fabric::sim
