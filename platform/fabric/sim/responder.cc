// The responder's side of a connection: what the device of the peer does with a message.
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

Bytes payload_bytes(const WorkRequest& request) { return request.local.length; }

std::int64_t lines(Bytes offset, Bytes length) {
  return length == 0 ? 1
                     : static_cast<std::int64_t>((offset + length - 1) / kCacheLine -
                                                 offset / kCacheLine + 1);
}

// The lines of a message are placed in any order (InfiniBand promises none, and nothing may be
// concluded from the last byte); which one changes from message to message.
pmem::sim::LineTimes placement_order(Time first, Picoseconds per_line, std::uint32_t count,
                                     std::uint32_t message) {
  static constexpr std::array<std::uint32_t, 5> kStrides{1, 3, 5, 7, 11};
  std::uint32_t stride = kStrides[message % kStrides.size()];
  if (std::gcd(stride, count) != 1) stride = 1;
  return {first, per_line, count, stride, message % count};
}

Access right_for(Opcode opcode) {
  switch (opcode) {
    case Opcode::read:
      return Access::remote_read;
    case Opcode::write:
    case Opcode::write_with_immediate:
    case Opcode::atomic_write:
      return Access::remote_write;
    case Opcode::compare_and_swap:
    case Opcode::fetch_and_add:
      return Access::remote_atomic;
    case Opcode::flush:
      return Access::remote_flush;
    case Opcode::send:
      break;
  }
  return Access::local;
}

}  // namespace

void End::arrived(Flight& flight) {
  const Profile& profile = nic_.profile;
  flight.arrived = true;
  if (flight.cut) {
    // What is there of a WRITE is placed; nothing else comes of it.
    const Nic::Registered* memory =
        nic_.find(flight.request.remote, payload_bytes(flight.request), Access::remote_write);
    if (flight.request.opcode == Opcode::write && state_ == State::connected && memory != nullptr) {
      place(flight, memory->region(), memory->offset + flight.request.remote.offset,
            network_.engine.now());
    }
    return network_.release(flight);
  }
  if (state_ != State::connected) {
    // Nobody answers, so the requester gives up after its retries; if it was told before, it has
    // flushed the operation already.
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

// Whether the first message that is held finds no receive buffer once more. The message itself is
// not looked at: with thousands of clients each look would be a cache miss.
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
  const Time at =
      nic_.receive.take(network_.engine.now(), profile.nic.message) + profile.nic.processing;

  if (request.opcode == Opcode::send || request.opcode == Opcode::write_with_immediate) {
    if (request.opcode == Opcode::write_with_immediate) {
      flight.memory = nic_.find(request.remote, request.local.length, Access::remote_write);
      if (flight.memory == nullptr) return refuse(flight, Status::remote_access_error, at), true;
    }
    const auto posted = receive_queue_ != nullptr ? receive_queue_->take() : std::nullopt;
    if (!posted) return false;
    LocalBuffer buffer = posted->buffer;
    std::optional<std::uint32_t> immediate;
    if (request.opcode == Opcode::send) {
      if (request.local.length > buffer.length) {
        return refuse(flight, Status::message_too_long, at), true;
      }
      buffer.length = request.local.length;
      place(flight, model_of(*buffer.region), buffer.offset, at);
    } else {
      buffer.length = 0;
      immediate = request.immediate;
      place(flight, flight.memory->region(), flight.memory->offset + request.remote.offset, at);
    }
    Delivery& delivery = deliver({queue_pair_, Status::success, immediate, buffer, posted->id},
                                 last_placement_ + profile.nic.pcie_write);
    delivery.journal = flight.from->journal_.get();
    delivery.message = flight.known_as;
    acknowledge(flight, std::max(at, flight.last_arrival + profile.nic.processing));
    return true;
  }

  Bytes length = request.local.length;
  if (request.opcode == Opcode::flush) length = request.flush_length;
  const bool word = request.opcode == Opcode::compare_and_swap ||
                    request.opcode == Opcode::fetch_and_add ||
                    request.opcode == Opcode::atomic_write;
  if (word) length = kWord;
  const bool known = (request.opcode != Opcode::flush ||
                      (request.placement == Placement::persistence ? profile.nic.flush_persistence
                                                                   : profile.nic.flush)) &&
                     (request.opcode != Opcode::atomic_write || profile.nic.atomic_write);
  if (!known) return refuse(flight, Status::unsupported, at), true;
  flight.memory = nic_.find(request.remote, length, right_for(request.opcode));
  if (flight.memory == nullptr ||
      (word && (flight.memory->offset + request.remote.offset) % kWord != 0)) {
    return refuse(flight, Status::remote_access_error, at), true;
  }

  switch (request.opcode) {
    case Opcode::write:
      place(flight, flight.memory->region(), flight.memory->offset + request.remote.offset, at);
      acknowledge(flight, std::max(at, flight.last_arrival + profile.nic.processing));
      break;
    case Opcode::read:
      execute_read(flight, at);
      break;
    case Opcode::flush:
      // Pushes earlier placements in front of it, like a read of nothing.
      flight.stage = Flight::Stage::executes;
      network_.engine.schedule(std::max(at, last_placement_) + profile.nic.pcie_read, flight);
      break;
    default:
      flight.stage = Flight::Stage::executes;
      network_.engine.schedule(
          nic_.atomics.take(std::max(at, last_placement_), profile.nic.atomic) +
              profile.nic.pcie_read,
          flight);
      break;
  }
  return true;
}

void End::place(Flight& flight, pmem::sim::SimRegion& region, Bytes offset, Time at) {
  const Bytes bytes = flight.payload.size();
  if (bytes == 0) {
    last_placement_ = std::max(last_placement_, at);
    return;
  }
  const Profile& profile = nic_.profile;
  const Picoseconds bus = transfer_time(bytes, profile.nic.pcie_bandwidth);
  const Time start = nic_.dma_write.take(at, bus);
  Time end = start + bus;
  if (!profile.ddio) {
    // Past the cache, straight to the memory controller.
    end = std::max(end,
                   region.device_writes(start, offset, round_up(bytes, kCacheLine) / kCacheLine));
  }
  const Time first = std::max(start, last_placement_) + profile.nic.pcie_write;
  end = std::max({end, flight.last_arrival + profile.nic.processing, last_placement_}) +
        profile.nic.pcie_write;
  const std::int64_t count = lines(offset, bytes);
  const Picoseconds per_line = (end - first) / count;
  region.device_write(flight.known_as, offset, flight.payload,
                      placement_order(first + per_line, per_line, static_cast<std::uint32_t>(count),
                                      placements_++));
  last_placement_ = std::max(last_placement_, end);
}

void End::execute_read(Flight& flight, Time at) {
  const Profile& profile = nic_.profile;
  const Bytes bytes = flight.request.local.length;
  pmem::sim::SimRegion& region = flight.memory->region();
  // A read pushes earlier placements of its connection in front of it (PCI Express ordering).
  const Picoseconds bus = transfer_time(bytes, profile.nic.pcie_bandwidth);
  const Time start = nic_.dma_read.take(std::max(at, last_placement_), bus);
  const Bytes begin = flight.memory->offset + flight.request.remote.offset;
  const auto [first, last] = region.device_reads(start + profile.nic.pcie_read / 2, begin,
                                                 round_up(bytes, kCacheLine) / kCacheLine);
  const std::int64_t count = lines(begin, bytes);
  const Picoseconds span = std::max(bus, last - first);
  flight.seen = {first, span / count};
  region.begin_device_read(begin, bytes, flight.seen);
  flight.read_by = first + span + profile.nic.pcie_read / 2;
  // A packet leaves as soon as it has been read.
  Picoseconds of_first = span;
  if (bytes > profile.link.mtu) {
    const double part = static_cast<double>(profile.link.mtu) / static_cast<double>(bytes);
    of_first = Picoseconds(std::llround(static_cast<double>(span.count()) * part));
  }
  flight.stage = Flight::Stage::responds;
  network_.engine.schedule(first + of_first + profile.nic.pcie_read / 2, flight);
}

void End::first_packet_read(Flight& flight) {
  flight.placed = send_response(flight, flight.request.local.length, flight.read_by);
  if (flight.read_by <= network_.engine.now()) return executed(flight);
  flight.stage = Flight::Stage::executes;
  network_.engine.schedule(flight.read_by, flight);
}

void End::executed(Flight& flight) {
  const WorkRequest& request = flight.request;
  const Bytes offset = flight.memory->offset + request.remote.offset;
  // The region may have been deregistered meanwhile; the device has begun, so it finishes.
  if (request.opcode == Opcode::read) {
    flight.payload.resize(request.local.length);
    flight.memory->region().end_device_read(offset, flight.payload, flight.seen);
    return flight.from->complete_at(flight, network_.engine.now(), flight.placed);
  }
  if (request.opcode == Opcode::flush) {
    if (request.placement == Placement::persistence) {
      flight.memory->region().device_flush(flight.known_as, offset, request.flush_length);
    }
    return respond(flight);
  }
  pmem::sim::SimRegion& region = flight.memory->region();
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
  const Profile& profile = nic_.profile;
  flight.from->complete_at(flight, at,
                           at + wire_time(profile, 0) + profile.link.propagation +
                               profile.nic.processing + profile.nic.pcie_write);
}

// The first packet of an answer can be sent now, the last one at `last_packet`. Returns when all of
// it is in the requester's memory.
Time End::send_response(Flight& flight, Bytes bytes, Time last_packet) {
  const Profile& profile = nic_.profile;
  const Picoseconds wire = wire_time(profile, bytes);
  const Picoseconds packet = first_packet_time(profile, bytes);
  const Time departure = nic_.link.take(network_.engine.now(), wire);
  const Time first_arrival = departure + packet + profile.link.propagation;
  const Time last_arrival =
      std::max(departure + wire, last_packet + packet) + profile.link.propagation;
  Nic& requester = flight.from->nic_;
  const Time received =
      requester.receive.take(first_arrival, profile.nic.message) + profile.nic.processing;
  const Picoseconds bus = transfer_time(bytes, profile.nic.pcie_bandwidth);
  const Picoseconds last_bus =
      transfer_time(std::min(bytes, profile.link.mtu), profile.nic.pcie_bandwidth);
  // All but the last packet are placed while the others arrive.
  const Time placed = requester.dma_write.take(received, bus) + bus;
  return std::max(placed, last_arrival + profile.nic.processing + last_bus) +
         profile.nic.pcie_write;
}

// Of a FLUSH or an atomic.
void End::respond(Flight& flight) {
  const Time now = network_.engine.now();
  flight.from->complete_at(flight, now, send_response(flight, kWord, now));
}

void End::refuse(Flight& flight, Status status, Time at) {
  flight.status = status;
  acknowledge(flight, at);
  // The responder's queue pair goes into the error state with a refusal of its own.
  if (status != Status::retry_exceeded && status != Status::receiver_not_ready) enter_error();
}

// The answer has left the responder when it is `sent`, and is with the requester `at` some later
// time.
void End::complete_at(Flight& flight, Time sent, Time at) {
  if (journal_ && flight.status == Status::success) [[unlikely]]
    tell_completed(flight, sent);
  last_completion_ = std::max(last_completion_, at);
  flight.stage = Flight::Stage::answered;
  network_.engine.schedule(last_completion_, flight);
}

// From then on the requester may have the completion, even if the responder fails. Completions come
// in order, so one that somebody waits for tells of those before it, too.
void End::tell_completed(const Flight& flight, Time sent) {
  unreported_.push_back(flight.known_as);
  if (flight.operation == nullptr) return;
  for (const auto& operation : unreported_) journal_->completed(operation, sent);
  unreported_.clear();
}

Delivery& End::deliver(const ReceiveCompletion& completion, Time at) {
  Delivery& delivery = network_.new_delivery();
  delivery.end = this;
  delivery.completion = completion;
  last_delivery_ = std::max(last_delivery_, at);
  network_.engine.schedule(last_delivery_, delivery);
  return delivery;
}

void End::lose_connection(Picoseconds delay) {
  network_.after(delay, [this] { enter_error(); });
}

}  // namespace perdura::fabric::sim
