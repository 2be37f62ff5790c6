#include "platform/fabric/sim/responder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <utility>

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

void SimReceiveQueue::post(const LocalPieces& buffer, std::uint64_t buffer_id) {
  if (posted_.size() >= depth_) std::abort();
  posted_.push_back({buffer, buffer_id});
}

void Delivery::fire() { to->delivered(*this); }

void Delivery::taken() {
  const SimThread* const thread = SimThread::running();
  Network& network = to->network();
  journal->received(message, thread != nullptr ? thread->now() : network.engine.now());
  network.release(*this);
}

Responder::Responder(End& end, Network& network, Nic& nic, const QueuePairOptions& options)
    : network_(network),
      nic_(nic),
      receive_queue_(static_cast<SimReceiveQueue*>(options.receive_queue)),
      end_(end),
      completions_(options.completions),
      reported_as_(options.reported_as) {}

void Responder::attach(QueuePair& queue_pair) {
  queue_pair_ = reported_as_ != nullptr ? reported_as_ : &queue_pair;
  for (ReceiveCompletion& completion : early_) {
    completion.queue_pair = queue_pair_;
    completions_->push(completion);
  }
  early_.clear();
}

void Responder::requester_has_flushed() {
  if (phase_ == Phase::serves) phase_ = Phase::requester_has_flushed;
}

void Responder::stop() { phase_ = Phase::ended; }

void Responder::report_disconnected() {
  deliver({queue_pair_, Status::disconnected, {}, {}, 0},
          std::max({network_.engine.now(), last_placement_ + nic_.profile.nic.pcie_write,
                    last_atomic_}));
}

void Responder::close() {
  phase_ = Phase::closed;
  if (completions_ != nullptr && queue_pair_ != nullptr) completions_->forget(*queue_pair_);
  queue_pair_ = nullptr;
}

void Responder::report(ReceiveCompletion completion) {
  if (queue_pair_ == nullptr) {
    early_.push_back(completion);
    return;
  }
  completion.queue_pair = queue_pair_;
  const SimThread::CompletionArrives completion_arrives(end_.thread());
  completions_->push(completion);
}

void Responder::delivered(Delivery& delivery) {
  if (reports()) {
    if (delivery.journal != nullptr) [[unlikely]]
      delivery.completion.observer = &delivery;
    report(delivery.completion);
  }
  if (delivery.completion.observer == nullptr) [[likely]]
    network_.release(delivery);
}

void Responder::arrived(Flight& flight) {
  const Profile& profile = nic_.profile;
  const bool cut_off = flight.way == Flight::Way::cut_off;
  flight.way = Flight::Way::arrived;
  if (flight.observed) [[unlikely]]
    flight.from->observer().arrived(flight.observed_as, network_.engine.now());
  if (cut_off) {
    // The part of a WRITE that has arrived is placed. Nothing else happens, since the requester is
    // gone.
    flight.memory = nic_.find(end_.address().node, flight.request.remote,
                              flight.request.local.length(), Access::remote_write, flight.pieces);
    if (flight.request.opcode == Opcode::write && !ended() && flight.memory != nullptr) {
      place(flight, network_.remote_targets(flight, flight.payload.size()), network_.engine.now());
    }
    return network_.release(flight);
  }
  if (ended()) {
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

void Responder::retry_held_later() {
  network_.engine.schedule_in_line(nic_.profile.retry.rnr_timer, retry_timer_);
}

// True if the first held message still finds no receive buffer. The message itself is not accessed:
// with thousands of clients each access would be a cache miss.
bool Responder::lacks_buffer_again() {
  if (phase_ != Phase::serves || waits_for_memory_) return false;
  if (receive_queue_ != nullptr && !receive_queue_->empty()) return false;
  nic_.receive.take(network_.engine.now(), nic_.profile.nic.message);
  return true;
}

void Responder::retry_held() {
  const Profile& profile = nic_.profile;
  bool rejected = lacks_buffer_again();
  while (!held_.empty()) {
    if (!rejected) {
      Flight& flight = held_.front();
      if (ended() || flight.flushed) {
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

bool Responder::process(Flight& flight) {
  const Profile& profile = nic_.profile;
  const WorkRequest& request = flight.request;
  Time at = nic_.receive.take(network_.engine.now(), profile.nic.message) + profile.nic.processing;

  if (nic_.is_software && request.opcode != Opcode::send && request.opcode != Opcode::read &&
      request.opcode != Opcode::write && request.opcode != Opcode::append) {
    return refuse(flight, Status::unsupported, at), true;
  }
  if (!may_have_flags(request) || (commits(request) && !profile.nic.flush_persistence)) {
    return refuse(flight, Status::unsupported, at), true;
  }
  if (request.opcode == Opcode::send || request.opcode == Opcode::write_with_immediate) {
    if (request.opcode == Opcode::write_with_immediate) {
      flight.memory = nic_.find(end_.address().node, request.remote, request.local.length(),
                                Access::remote_write, flight.pieces);
      if (flight.memory == nullptr) return refuse(flight, Status::remote_access_error, at), true;
    }
    waits_for_memory_ = false;
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
      place(flight, network_.local_targets(posted.buffer, length), at);
    } else {
      received.buffer.length = 0;
      received.immediate = request.immediate;
      at = nic_.find_remote(at, request, *flight.memory, request.local.length(), flight.pieces);
      place(flight, network_.remote_targets(flight, request.local.length()), at);
    }
    Delivery& delivery = deliver(received, last_placement_ + profile.nic.pcie_write);
    delivery.journal = flight.from->journal();
    delivery.message = flight.known_as;
    acknowledge(flight, std::max(at, flight.last_arrival + profile.nic.processing));
    return true;
  }

  waits_for_memory_ = request.opcode == Opcode::append;
  if (waits_for_memory_) return process_append(flight, at);

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
      nic_.find(end_.address().node, request.remote, length, rights_for(request), flight.pieces);
  if (flight.memory == nullptr || (word && !is_word(network_.remote_targets(flight, kWord)))) {
    return refuse(flight, Status::remote_access_error, at), true;
  }
  if (commits(request) && !flight.memory->may_be_committed()) {
    return refuse(flight, Status::unsupported, at), true;
  }

  // A FLUSH needs no translation: it only pushes data that is on its way.
  if (kind_of(request.opcode) != WorkKind::flush) {
    at = nic_.find_remote(at, request, *flight.memory, length, flight.pieces);
  }

  switch (request.opcode) {
    case Opcode::write:
      place(flight, network_.remote_targets(flight, length), at);
      accepted(flight, at);
      break;
    case Opcode::commit:
      begin_commit(flight, at);
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
      note_dirty(flight, kWord, takes_effect);
      execute_at(flight, takes_effect);
      break;
    }
  }
  return true;
}

void Responder::place(Flight& flight, const Targets& targets, Time at) {
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
  note_dirty(flight, bytes, end);
}

// Returns how many lines the first `bytes` bytes of several targets span. If they are written to
// memory, advances `end` to when memory has taken them.
std::int64_t Responder::write_targets(const Targets& targets, Bytes bytes, Time start,
                                      Time& end) const {
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
void Responder::place_in_turn(const Flight& flight, const Targets& targets, Time next,
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
void Responder::keep_busy(Flight& flight, Time until) {
  busy_until_ = std::max(busy_until_, until);
  if (flight.memory == nullptr || flight.memory->extents == nullptr) [[likely]]
    return;
  flight.memory->busy_until = std::max(flight.memory->busy_until, until);
}

void Responder::execute_read(Flight& flight, Time at) {
  const Profile& profile = nic_.profile;
  const Bytes bytes = flight.request.local.length();
  // A read pushes earlier placements of its connection in front of it (PCI Express ordering), and
  // waits for its earlier atomics.
  const Picoseconds bus = transfer_time(bytes, profile.nic.dma_read_bandwidth());
  const Time now = network_.engine.now();
  const Time start = nic_.dma_read.take(now, behind_earlier<WorkKind::read>(at), bus);
  const Targets targets = network_.remote_targets(flight, bytes);
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
  if (const Bytes mtu = end_.path().mtu; bytes > mtu) {
    const double part = static_cast<double>(mtu) / static_cast<double>(bytes);
    of_first = Picoseconds(std::llround(static_cast<double>(span.count()) * part));
  }
  flight.stage = Flight::Stage::responds;
  network_.engine.schedule(first + of_first + profile.nic.pcie_read / 2, flight);
}

// Schedules the execution of a FLUSH or an atomic.
void Responder::execute_at(Flight& flight, Time at) {
  keep_busy(flight, at);
  flight.stage = Flight::Stage::executes;
  network_.engine.schedule(at, flight);
}

void Responder::observe_execution(const Flight& flight, const Target& target, Time at) {
  const Bytes persistent = target.region->tracked() ? target.length : 0;
  flight.from->observer().executed(flight.observed_as, {target.region->id(), target.offset},
                                   persistent, at);
}

void Responder::first_packet_read(Flight& flight) {
  flight.placed = send_response(flight, flight.request.local.length(), flight.read_by);
  if (flight.read_by <= network_.engine.now()) return executed(flight);
  flight.stage = Flight::Stage::executes;
  network_.engine.schedule(flight.read_by, flight);
}

void Responder::executed(Flight& flight) {
  const WorkRequest& request = flight.request;
  if (commits(request)) return execute_commit(flight);
  // The region may have been deregistered meanwhile. The device has begun the operation, so it
  // finishes it.
  if (request.opcode == Opcode::read) {
    flight.payload.resize(request.local.length());
    std::span<std::byte> data = flight.payload;
    pmem::sim::LineTimes seen = flight.seen;
    network_.remote_targets(flight, data.size()).for_each([&](const Target& target) {
      target.region->end_device_read(target.offset, data.first(target.length), seen);
      seen.first += seen.per_line * lines(target.offset, target.length);
      data = data.subspan(target.length);
    });
    return flight.from->complete_at(flight, network_.engine.now(), flight.placed);
  }
  if (flight.observed && request.opcode == Opcode::flush) [[unlikely]] {
    observe_execution(flight, network_.remote_targets(flight, request.flush_length).first,
                      network_.engine.now());
  }
  if (request.opcode == Opcode::flush) {
    if (request.placement == Placement::persistence) {
      network_.remote_targets(flight, request.flush_length).for_each([&](const Target& target) {
        target.region->device_flush(flight.known_as, target.offset, target.length);
      });
      if (const auto& appends = flight.memory->appends) {
        flight.memory->region().device_flush(flight.known_as, appends->size_word, kWord);
      }
    }
    return respond(flight);
  }
  const Target word = network_.remote_targets(flight, kWord).first;
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

void Responder::acknowledge(Flight& flight, Time at) {
  const perdura::sim::LinkProfile& path = end_.path();
  // If the responder is gone, there is no acknowledgment: the requester gives up.
  const Bytes on_wire = wire_bytes(path, 0);
  if (flight.status != Status::retry_exceeded) end_.count_sent(on_wire);
  flight.from->acknowledged(flight, at,
                            at + transfer_time(on_wire, path.bandwidth) + path.propagation);
}

// Sends an answer whose first packet is ready now and whose last packet is ready at `last_packet`.
// Returns when all of it is in the requester's memory.
Time Responder::send_response(Flight& flight, Bytes bytes, Time last_packet) {
  const perdura::sim::LinkProfile& path = end_.path();
  const Bytes on_wire = wire_bytes(path, bytes);
  end_.count_sent(on_wire);
  const Picoseconds wire = transfer_time(on_wire, path.bandwidth);
  const Picoseconds packet = first_packet_time(path, bytes);
  const Time now = network_.engine.now();
  // Answers of a connection leave in the order of its operations.
  last_answer_ = nic_.link.take(now, std::max(now, last_answer_),
                                transfer_time(on_wire, nic_.profile.link.bandwidth));
  const Time departure = end_.enter_path(last_answer_, on_wire, last_answer_arrives_);
  const Time first_arrival = departure + packet + path.propagation;
  const Time last_arrival = std::max(departure + wire, last_packet + packet) + path.propagation;
  return flight.from->take_answer(flight, bytes, first_arrival, last_arrival);
}

// Answers a FLUSH or an atomic.
void Responder::respond(Flight& flight) {
  const Time now = network_.engine.now();
  flight.from->complete_at(flight, now, send_response(flight, kWord, now));
}

void Responder::refuse(Flight& flight, Status status, Time at) {
  flight.status = status;
  acknowledge(flight, at);
  // When it refuses an operation, the responder's own queue pair goes into the error state, too.
  if (status != Status::retry_exceeded && status != Status::receiver_not_ready) {
    end_.enter_error();
  }
}

Delivery& Responder::deliver(const ReceiveCompletion& completion, Time at) {
  Delivery& delivery = network_.new_delivery();
  delivery.to = this;
  delivery.completion = completion;
  if (network_.delays.messages != nullptr) [[unlikely]]
    at += perdura::sim::choose_delay(*network_.delays.messages);
  last_delivery_ = std::max(last_delivery_, at);
  network_.engine.schedule(last_delivery_, delivery);
  return delivery;
}

}  // namespace perdura::fabric::sim
