// The responder's side of a connection: how the peer's device processes a message.
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "platform/fabric/sim/connection.h"
#include "platform/fabric/sim/packets.h"

namespace perdura::fabric::sim {

using perdura::sim::Profile;
using perdura::sim::transfer_time;

namespace {

std::int64_t lines(Bytes offset, Bytes length) {
  return length == 0 ? 1
                     : static_cast<std::int64_t>((offset + length - 1) / kCacheLine -
                                                 offset / kCacheLine + 1);
}

// The lines of a message are placed in an order that changes from message to message: InfiniBand
// promises none, so nothing may be concluded from the last byte.
pmem::sim::LineTimes placement_order(Time first, Picoseconds per_line, std::uint32_t count,
                                     std::uint32_t message) {
  static constexpr std::array<std::uint32_t, 5> kStrides{1, 3, 5, 7, 11};
  std::uint32_t stride = kStrides[message % kStrides.size()];
  if (std::gcd(stride, count) != 1) stride = 1;
  return {first, per_line, count, stride, message % count};
}

bool is_word(const Targets& targets) {
  return targets.more.empty() && targets.first.offset % kWord == 0;
}

}  // namespace

void End::arrived(Flight& flight) {
  const Profile& profile = nic_.profile;
  flight.arrived = true;
  if (flight.observed) [[unlikely]]
    flight.from->observer().arrived(flight.observed_as, network_.engine.now());
  if (flight.cut) {
    // The part of a WRITE that has arrived is placed. Nothing else happens, since the requester is
    // gone.
    flight.memory = nic_.find(address_.node, flight.request.remote, flight.request.local.length(),
                              Access::remote_write, flight.pieces);
    if (flight.request.opcode == Opcode::write && state_ == State::connected &&
        flight.memory != nullptr) {
      place(flight, remote_targets(flight, flight.payload.size()), network_.engine.now());
    }
    return network_.release(flight);
  }
  if (state_ != State::connected) {
    // No one answers, so the requester gives up after its retries. If it already knows that the
    // connection has ended, it has flushed the operation.
    refuse(flight, Status::retry_exceeded, network_.engine.now() + profile.retry.timeout);
    return;
  }
  if (!held_.empty()) {
    held_.push_back(flight);
    return;
  }
  if (process(flight)) return;
  held_.push_back(flight);
  rnr_retries_ = 0;
  retry_held_later();
}

void End::retry_held_later() {
  network_.engine.schedule_in_line(nic_.profile.retry.rnr_timer, retry_timer_);
}

// True if the first held message still finds no receive buffer. The message itself is not accessed:
// with thousands of clients each access would be a cache miss.
bool End::lacks_buffer_again() {
  if (state_ != State::connected || peer_has_flushed_) return false;
  if (receive_queue_ != nullptr && !receive_queue_->empty()) return false;
  nic_.receive.take(network_.engine.now(), nic_.profile.nic.message);
  return true;
}

void End::retry_held() {
  const Profile& profile = nic_.profile;
  bool rejected = lacks_buffer_again();
  while (!held_.empty()) {
    if (!rejected) {
      Flight& flight = held_.front();
      if (state_ != State::connected || flight.flushed) {
        held_.take_front();
        refuse(flight, Status::retry_exceeded, network_.engine.now());
        continue;
      }
      if (process(flight)) {
        held_.take_front();
        rnr_retries_ = 0;
        continue;
      }
    }
    rejected = false;
    // Seven retries stand for retrying without end, as in verbs.
    if (profile.retry.rnr_retries == 7 || ++rnr_retries_ <= profile.retry.rnr_retries) {
      return retry_held_later();
    }
    refuse(held_.take_front(), Status::receiver_not_ready, network_.engine.now());
  }
}

bool End::process(Flight& flight) {
  const Profile& profile = nic_.profile;
  const WorkRequest& request = flight.request;
  Time at = nic_.receive.take(network_.engine.now(), profile.nic.message) + profile.nic.processing;

  if (nic_.is_software && request.opcode != Opcode::send && request.opcode != Opcode::read &&
      request.opcode != Opcode::write) {
    return refuse(flight, Status::unsupported, at), true;
  }
  if (request.opcode == Opcode::send || request.opcode == Opcode::write_with_immediate) {
    if (request.opcode == Opcode::write_with_immediate) {
      flight.memory = nic_.find(address_.node, request.remote, request.local.length(),
                                Access::remote_write, flight.pieces);
      if (flight.memory == nullptr) return refuse(flight, Status::remote_access_error, at), true;
    }
    if (receive_queue_ == nullptr || receive_queue_->empty()) return false;
    const SimReceiveQueue::Posted& posted = receive_queue_->take();
    ReceiveCompletion received{queue_pair_,           Status::success, std::nullopt,
                               posted.buffer.first(), posted.id,       0};
    if (request.opcode == Opcode::send) {
      const std::uint32_t length = request.local.length();
      if (length > posted.buffer.length()) {
        return refuse(flight, Status::message_too_long, at), true;
      }
      received.length = length;
      received.buffer.length = std::min(length, received.buffer.length);
      at = nic_.find_local(at, posted.buffer, length);
      place(flight, local_targets(posted.buffer, length), at);
    } else {
      received.buffer.length = 0;
      received.immediate = request.immediate;
      at = nic_.find_remote(at, request, *flight.memory, request.local.length(), flight.pieces);
      place(flight, remote_targets(flight, request.local.length()), at);
    }
    Delivery& delivery = deliver(received, last_placement_ + profile.nic.pcie_write);
    delivery.journal = flight.from->journal_.get();
    delivery.message = flight.known_as;
    acknowledge(flight, std::max(at, flight.last_arrival + profile.nic.processing));
    return true;
  }

  Bytes length = request.local.length();
  if (request.opcode == Opcode::flush) length = request.flush_length;
  const bool word = is_atomic(request.opcode);
  if (word) length = kWord;
  const bool known = (request.opcode != Opcode::flush ||
                      (request.placement == Placement::persistence ? profile.nic.flush_persistence
                                                                   : profile.nic.flush)) &&
                     (request.opcode != Opcode::atomic_write || profile.nic.atomic_write);
  if (!known) return refuse(flight, Status::unsupported, at), true;
  flight.memory =
      nic_.find(address_.node, request.remote, length, right_for(request.opcode), flight.pieces);
  if (flight.memory == nullptr || (word && !is_word(remote_targets(flight, kWord)))) {
    return refuse(flight, Status::remote_access_error, at), true;
  }

  // A FLUSH needs no translation: it only pushes data that is on its way.
  if (request.opcode != Opcode::flush) {
    at = nic_.find_remote(at, request, *flight.memory, length, flight.pieces);
  }

  switch (request.opcode) {
    case Opcode::write:
      place(flight, remote_targets(flight, length), at);
      acknowledge(flight, std::max(at, flight.last_arrival + profile.nic.processing));
      break;
    case Opcode::read:
      execute_read(flight, at);
      break;
    case Opcode::flush:
      // A FLUSH pushes earlier placements in front of it, as a READ of no bytes would, and waits
      // for earlier atomics.
      last_push_ = behind_earlier<WorkKind::flush>(at);
      execute_at(flight, last_push_ + profile.nic.pcie_read);
      break;
    default: {
      const Time takes_effect =
          nic_.atomics.take(behind_earlier<WorkKind::atomic>(at), profile.nic.atomic) +
          profile.nic.pcie_read;
      last_atomic_ = std::max(last_atomic_, takes_effect);
      execute_at(flight, takes_effect);
      break;
    }
  }
  return true;
}

// The parts of regions that an operation touches at the responder.
Targets End::targets_in_extents(const Flight& flight) const {
  std::vector<Target>& targets = network_.targets;
  pmem::sim::SimRegion& region = flight.memory->region();
  targets.clear();
  for (const RegionPiece& piece : flight.pieces) {
    targets.push_back({&region, piece.offset, piece.length});
  }
  if (targets.empty()) return {{&region, 0, 0}, {}};
  return {targets.front(), std::span(targets).subspan(1)};
}

// The parts of regions that the first `length` bytes of local memory are in.
Targets End::local_targets(const LocalPieces& local, Bytes length) const {
  if (length == 0) return {};
  if (const LocalBuffer& first = local.first(); length <= first.length) [[likely]] {
    return {{&model_of(*first.region), first.offset, length}, {}};
  }
  std::vector<Target>& targets = network_.targets;
  targets.clear();
  for (const LocalBuffer& piece : local.all()) {
    const Bytes part = std::min<Bytes>(piece.length, length);
    if (part != 0) targets.push_back({&model_of(*piece.region), piece.offset, part});
    length -= part;
  }
  return {targets.front(), std::span(targets).subspan(1)};
}

void End::place(Flight& flight, const Targets& targets, Time at) {
  const Bytes bytes = flight.payload.size();
  at = behind_earlier<WorkKind::posted>(at);
  if (bytes == 0) {
    last_placement_ = std::max(last_placement_, at);
    return;
  }
  const Profile& profile = nic_.profile;
  const Picoseconds bus = transfer_time(bytes, profile.nic.pcie_bandwidth);
  const Time start = nic_.dma_write.take(at, bus);
  Time end = start + bus;
  const Target& one = targets.first;
  const bool is_one = targets.more.empty();
  std::int64_t count = 0;
  if (!is_one) [[unlikely]] {
    count = write_targets(targets, bytes, start, end);
  } else {
    count = lines(one.offset, bytes);
    if (!profile.ddio) {
      // Without DDIO the lines go past the cache, straight to the memory controller.
      end = std::max(end, one.region->device_writes(start, one.offset,
                                                    round_up(bytes, kCacheLine) / kCacheLine));
    }
  }
  Time first = std::max(start, last_placement_) + profile.nic.pcie_write;
  // Each placement follows the last one, so that their times add up.
  end = perdura::sim::limited(
      std::max({end, flight.last_arrival + profile.nic.processing, last_placement_}) +
      profile.nic.pcie_write);
  if (network_.delays.devices != nullptr) [[unlikely]] {
    const Picoseconds late = perdura::sim::choose_delay(*network_.delays.devices);
    first += late;
    end += late;
  }
  const Picoseconds per_line = (end - first) / count;
  if (!is_one) [[unlikely]] {
    place_in_turn(flight, targets, first + per_line, per_line);
  } else {
    one.region->device_write(flight.known_as, one.offset, flight.payload,
                             placement_order(first + per_line, per_line,
                                             static_cast<std::uint32_t>(count), placements_++),
                             nic_.cause());
  }
  last_placement_ = std::max(last_placement_, end);
  keep_busy(flight, end);
}

// Returns how many lines the first `bytes` bytes of several targets span. If they are written to
// memory, advances `end` to when memory has taken them.
std::int64_t End::write_targets(const Targets& targets, Bytes bytes, Time start, Time& end) const {
  std::int64_t count = 0;
  targets.for_each([&](const Target& target) {
    // Fewer bytes than the targets have arrive if the requester died.
    const Bytes part = std::min(target.length, bytes);
    if (part == 0) return;
    bytes -= part;
    count += lines(target.offset, part);
    if (nic_.profile.ddio) return;
    end = std::max(end, target.region->device_writes(start, target.offset,
                                                     round_up(part, kCacheLine) / kCacheLine));
  });
  return count;
}

// Places the targets one after the other, from time `next` on; the lines of each target are placed
// in any order.
void End::place_in_turn(const Flight& flight, const Targets& targets, Time next,
                        Picoseconds per_line) {
  std::span<const std::byte> data = flight.payload;
  targets.for_each([&](const Target& target) {
    const Bytes part = std::min<Bytes>(target.length, data.size());
    if (part == 0) return;
    const auto count = static_cast<std::uint32_t>(lines(target.offset, part));
    target.region->device_write(flight.known_as, target.offset, data.first(part),
                                placement_order(next, per_line, count, placements_++),
                                nic_.cause());
    next += per_line * static_cast<std::int64_t>(count);
    data = data.subspan(part);
  });
}

// Notes that until then the device is at work for this end, and uses the memory of a registration
// with extents.
void End::keep_busy(Flight& flight, Time until) {
  busy_until_ = std::max(busy_until_, until);
  if (flight.memory == nullptr || flight.memory->extents == nullptr) [[likely]]
    return;
  flight.memory->busy_until = std::max(flight.memory->busy_until, until);
}

void End::execute_read(Flight& flight, Time at) {
  const Profile& profile = nic_.profile;
  const Bytes bytes = flight.request.local.length();
  // A read pushes earlier placements of its connection in front of it (PCI Express ordering), and
  // waits for its earlier atomics.
  const Picoseconds bus = transfer_time(bytes, profile.nic.dma_read_bandwidth());
  const Time now = network_.engine.now();
  const Time start = nic_.dma_read.take(now, behind_earlier<WorkKind::read>(at), bus);
  const Targets targets = remote_targets(flight, bytes);
  const Target& one = targets.first;
  const bool is_one = targets.more.empty();
  const Time asked_at = start + profile.nic.pcie_read / 2;
  auto [first, last] =
      one.region->device_reads(asked_at, one.offset, round_up(one.length, kCacheLine) / kCacheLine);
  std::int64_t count = lines(one.offset, one.length);
  for (const Target& target : targets.more) {
    const auto asked = target.region->device_reads(
        asked_at, target.offset, round_up(target.length, kCacheLine) / kCacheLine);
    first = std::min(first, asked.first);
    last = std::max(last, asked.last);
    count += lines(target.offset, target.length);
  }
  const Picoseconds span = std::max(bus, last - first);
  flight.seen = {first, span / count};
  if (is_one) [[likely]] {
    one.region->begin_device_read(one.offset, bytes, flight.seen);
  } else {
    pmem::sim::LineTimes seen = flight.seen;
    targets.for_each([&](const Target& target) {
      target.region->begin_device_read(target.offset, target.length, seen);
      seen.first += seen.per_line * lines(target.offset, target.length);
    });
  }
  if (flight.observed) [[unlikely]]
    observe_execution(flight, one, first);
  flight.read_by = first + span + profile.nic.pcie_read / 2;
  keep_busy(flight, flight.read_by);
  // Each packet leaves as soon as it has been read.
  Picoseconds of_first = span;
  if (bytes > path_.mtu) {
    const double part = static_cast<double>(path_.mtu) / static_cast<double>(bytes);
    of_first = Picoseconds(std::llround(static_cast<double>(span.count()) * part));
  }
  flight.stage = Flight::Stage::responds;
  network_.engine.schedule(first + of_first + profile.nic.pcie_read / 2, flight);
}

// Schedules the execution of a FLUSH or an atomic.
void End::execute_at(Flight& flight, Time at) {
  keep_busy(flight, at);
  flight.stage = Flight::Stage::executes;
  network_.engine.schedule(at, flight);
}

void End::observe_execution(const Flight& flight, const Target& target, Time at) {
  const Bytes persistent = target.region->tracked() ? target.length : 0;
  flight.from->observer().executed(flight.observed_as, {target.region->id(), target.offset},
                                   persistent, at);
}

void End::first_packet_read(Flight& flight) {
  flight.placed = send_response(flight, flight.request.local.length(), flight.read_by);
  if (flight.read_by <= network_.engine.now()) return executed(flight);
  flight.stage = Flight::Stage::executes;
  network_.engine.schedule(flight.read_by, flight);
}

void End::executed(Flight& flight) {
  const WorkRequest& request = flight.request;
  // The region may have been deregistered meanwhile. The device has begun the operation, so it
  // finishes it.
  if (request.opcode == Opcode::read) {
    flight.payload.resize(request.local.length());
    std::span<std::byte> data = flight.payload;
    pmem::sim::LineTimes seen = flight.seen;
    remote_targets(flight, data.size()).for_each([&](const Target& target) {
      target.region->end_device_read(target.offset, data.first(target.length), seen);
      seen.first += seen.per_line * lines(target.offset, target.length);
      data = data.subspan(target.length);
    });
    return flight.from->complete_at(flight, network_.engine.now(), flight.placed);
  }
  if (flight.observed && request.opcode == Opcode::flush) [[unlikely]] {
    observe_execution(flight, remote_targets(flight, request.flush_length).first,
                      network_.engine.now());
  }
  if (request.opcode == Opcode::flush) {
    if (request.placement == Placement::persistence) {
      remote_targets(flight, request.flush_length).for_each([&](const Target& target) {
        target.region->device_flush(flight.known_as, target.offset, target.length);
      });
    }
    return respond(flight);
  }
  const Target word = remote_targets(flight, kWord).first;
  if (flight.observed) [[unlikely]]
    observe_execution(flight, word, network_.engine.now());
  pmem::sim::SimRegion& region = *word.region;
  const Bytes offset = word.offset;
  flight.old_value = region.device_load(offset);
  const auto store = [&](std::uint64_t value) {
    region.device_store(flight.known_as, offset, value);
  };
  switch (request.opcode) {
    case Opcode::compare_and_swap:
      if (flight.old_value == request.expected) store(request.operand);
      break;
    case Opcode::fetch_and_add:
      store(flight.old_value + request.operand);
      break;
    default:
      store(request.operand);
      flight.old_value = 0;
      break;
  }
  last_placement_ = std::max(last_placement_, network_.engine.now());
  respond(flight);
}

void End::acknowledge(Flight& flight, Time at) {
  const perdura::sim::NicProfile& requester = flight.from->nic_.profile.nic;
  // If the responder is gone, there is no acknowledgment: the requester gives up.
  const Bytes on_wire = wire_bytes(path_, 0);
  if (flight.status != Status::retry_exceeded) count_sent(on_wire);
  flight.from->complete_at(flight, at,
                           at + transfer_time(on_wire, path_.bandwidth) + path_.propagation +
                               requester.processing + requester.pcie_write);
}

// Sends an answer whose first packet is ready now and whose last packet is ready at `last_packet`.
// Returns when all of it is in the requester's memory.
Time End::send_response(Flight& flight, Bytes bytes, Time last_packet) {
  const Bytes on_wire = wire_bytes(path_, bytes);
  count_sent(on_wire);
  const Picoseconds wire = transfer_time(on_wire, path_.bandwidth);
  const Picoseconds packet = first_packet_time(path_, bytes);
  const Time now = network_.engine.now();
  // Answers of a connection leave in the order of its operations.
  last_answer_ = nic_.link.take(now, std::max(now, last_answer_),
                                transfer_time(on_wire, nic_.profile.link.bandwidth));
  const Time departure = enter_path(last_answer_, on_wire, last_answer_arrives_);
  const Time first_arrival = departure + packet + path_.propagation;
  const Time last_arrival = std::max(departure + wire, last_packet + packet) + path_.propagation;
  Nic& requester = flight.from->nic_;
  const Profile& profile = requester.profile;
  Time received =
      requester.receive.take(first_arrival, profile.nic.message) + profile.nic.processing;
  if (flight.request.opcode == Opcode::read) {
    received = requester.find_local(received, flight.request.local, bytes);
  }
  const Picoseconds bus = transfer_time(bytes, profile.nic.pcie_bandwidth);
  const Picoseconds last_bus =
      transfer_time(std::min(bytes, path_.mtu), profile.nic.pcie_bandwidth);
  // All but the last packet are placed while the others arrive.
  const Time placed = requester.dma_write.take(received, bus) + bus;
  return std::max(placed, last_arrival + profile.nic.processing + last_bus) +
         profile.nic.pcie_write;
}

// Answers a FLUSH or an atomic.
void End::respond(Flight& flight) {
  const Time now = network_.engine.now();
  flight.from->complete_at(flight, now, send_response(flight, kWord, now));
}

void End::refuse(Flight& flight, Status status, Time at) {
  flight.status = status;
  acknowledge(flight, at);
  // When it refuses an operation, the responder's own queue pair goes into the error state, too.
  if (status != Status::retry_exceeded && status != Status::receiver_not_ready) enter_error();
}

// The answer leaves the responder at `sent`, and its completion reaches the requester at `at`.
void End::complete_at(Flight& flight, Time sent, Time at) {
  if (journal_ && flight.status == Status::success) [[unlikely]]
    tell_completed(flight, sent);
  if (network_.delays.messages != nullptr) [[unlikely]]
    at += perdura::sim::choose_delay(*network_.delays.messages);
  flight.stage = Flight::Stage::answered;
  network_.engine.schedule(at, flight);
}

// Tells the journal which operations complete: from now on the requester may receive the
// completion, even if the responder fails. Completions come in order: one that follows a READ waits
// for the READ's answer, and a signaled one also reports the unsignaled ones before it.
void End::tell_completed(Flight& flight, Time sent) {
  flight.succeeded = true;
  flight.sent = sent;
  outstanding_.for_each([this, all = true](Flight& next) mutable {
    all = all && next.succeeded;
    if (!all || next.told) return;
    next.told = true;
    last_told_ = std::max(last_told_, next.sent);
    unreported_.push_back(next.known_as);
    if (next.operation == nullptr) return;
    for (const auto& operation : unreported_) journal_->completed(operation, last_told_);
    unreported_.clear();
  });
}

Delivery& End::deliver(const ReceiveCompletion& completion, Time at) {
  Delivery& delivery = network_.new_delivery();
  delivery.end = this;
  delivery.completion = completion;
  if (network_.delays.messages != nullptr) [[unlikely]]
    at += perdura::sim::choose_delay(*network_.delays.messages);
  last_delivery_ = std::max(last_delivery_, at);
  network_.engine.schedule(last_delivery_, delivery);
  return delivery;
}

void End::lose_connection(Picoseconds delay) {
  network_.after(delay, [this] { enter_error(); });
}

}  // namespace perdura::fabric::sim
