#include "platform/fabric/sim/requester.h"

#include <algorithm>
#include <utility>

#include "platform/fabric/sim/connection.h"
#include "platform/fabric/sim/multicast.h"
#include "platform/fabric/sim/packets.h"
#include "platform/fabric/sim/relaxed_pipe.h"

namespace perdura::fabric::sim {

using perdura::sim::Profile;
using perdura::sim::transfer_time;

namespace {

void gather(const LocalPieces& pieces, std::vector<std::byte>& into) {
  if (pieces.is_one()) [[likely]] {
    const auto bytes = pieces.first().bytes();
    into.assign(bytes.begin(), bytes.end());
    return;
  }
  into.clear();
  for (const LocalBuffer& piece : pieces.all()) {
    const auto bytes = piece.bytes();
    into.insert(into.end(), bytes.begin(), bytes.end());
  }
}

// True for a WRITE that the network makes from another one, which has left the device already.
bool is_copy() {
  const Multicast* const group = Multicast::current();
  return group != nullptr && group->sent().has_value();
}

pmem::RemoteKind remote_kind_of(const WorkRequest& request) {
  switch (kind_of(request.opcode)) {
    case WorkKind::posted:
      break;
    case WorkKind::read:
      return pmem::RemoteKind::read;
    case WorkKind::atomic:
      return pmem::RemoteKind::atomic;
    case WorkKind::flush:
      return request.placement == Placement::persistence || commits(request)
                 ? pmem::RemoteKind::flush_persistence
                 : pmem::RemoteKind::flush;
  }
  return pmem::RemoteKind::posted;
}

}  // namespace

Requester::Requester(End& end, Network& network, Nic& nic, std::uint32_t send_depth)
    : end_(end), network_(network), nic_(nic), send_depth_(send_depth) {}

Requester::~Requester() = default;

void Requester::join(Responder& responder, std::shared_ptr<pmem::sim::Journal> journal) {
  responder_ = &responder;
  journal_ = std::move(journal);
  if (journal_) [[unlikely]]
    // A CPU's stores stay in its caches, like a device's placements with DDIO.
    connection_ = nic_.is_software ? journal_->connect_through_caches() : journal_->connect();
}

void Requester::post(const WorkRequest& request, RdmaOperation* operation) {
  SimThread& thread = end_.thread();
  const bool by_thread = SimThread::running() == &thread;
  if (by_thread && !is_copy()) thread.charge_time(nic_.profile.cpu.post);
  if (!end_.connected()) {
    if (operation != nullptr) operation->complete(Status::flushed);
    return;
  }
  Flight& flight = network_.new_flight();
  flight.from = this;
  flight.request = request;
  flight.operation = operation;
  if (operation != nullptr) operation->transport_state = &flight;
  if (network_.engine.relaxed()) [[unlikely]]
    return relaxed().post(flight);
  if (request.flags.inlined) gather(request.local, flight.payload);
  if (journal_ && journal_->observer() != nullptr) [[unlikely]]
    observe(flight);
  waiting_.push_back(flight);
  advance();
  if (by_thread) thread.pause_after_post();
}

std::coroutine_handle<> Requester::awaited_by(const Flight& flight) {
  return flight.operation != nullptr ? flight.operation->awaited_by() : std::coroutine_handle<>();
}

void Requester::observe(Flight& flight) const {
  const WorkRequest& request = flight.request;
  flight.observed = true;
  flight.observed_as = observer().posted(
      {end_.address(), end_.peer().address(), request.opcode,
       request.opcode == Opcode::flush ? request.flush_length : request.local.length(),
       SimThread::running() == &end_.thread() ? end_.thread().now() : network_.engine.now(),
       awaited_by(flight)});
}

void Requester::advance() {
  while (!waiting_.empty() && outstanding_count_ < send_depth_) {
    Flight& flight = waiting_.front();
    if (flight.request.flags.fenced && awaited_by_fence_ > 0) return;
    waiting_.take_front();
    outstanding_.push_back(flight);
    ++outstanding_count_;
    if (holds_up_fence(flight.request)) ++awaited_by_fence_;
    transmit(flight);
  }
}

void Requester::transmit(Flight& flight) {
  const perdura::sim::LinkProfile& path = end_.path();
  if (journal_) [[unlikely]] {
    flight.known_as =
        journal_->post(connection_, remote_kind_of(flight.request), flight.request.flags.fenced);
    flight.committed_as =
        flight.request.flags.commit
            ? journal_->post(connection_, pmem::RemoteKind::flush_persistence, false)
            : flight.known_as;
    if (flight.observed && journal_->powered()) {
      observer().sent(flight.observed_as, journal_->machine(), flight.known_as);
    }
  }
  const bool carries_payload = is_posted(flight.request.opcode);
  const Bytes bytes = carries_payload ? flight.request.local.length() : 0;
  const Bytes on_wire = wire_bytes(path, bytes);
  const Time fetched = is_copy() ? take_copy(flight, on_wire) : leave(flight, bytes, on_wire);
  const Picoseconds wire = transfer_time(on_wire, path.bandwidth);
  Time departure = end_.enter_path(last_departure_, on_wire, last_request_arrives_);
  if (network_.delays.messages != nullptr) [[unlikely]]
    departure = delayed(departure, wire);
  flight.departure = departure;
  const Picoseconds first = first_packet_time(path, bytes);
  flight.last_arrival = std::max(departure + wire, fetched + first) + path.propagation;
  flight.stage = Flight::Stage::arrives;
  network_.engine.schedule(departure + first + path.propagation, flight);
}

// Takes a message through the device, and returns when the device has all of its payload.
Time Requester::leave(Flight& flight, Bytes bytes, Bytes on_wire) {
  const Profile& profile = nic_.profile;
  const Time now = network_.engine.now();
  const Time posted = SimThread::running() == &end_.thread() ? end_.thread().now() : now;
  // The doorbell, a posted PCIe write, starts the device.
  Time ready = nic_.transmit.take(now, posted + profile.nic.pcie_write, profile.nic.message) +
               profile.nic.processing;
  Time fetched = ready;
  if (bytes > 0 && !flight.request.flags.inlined) {
    ready = nic_.find_local(ready, flight.request.local, bytes);
    const Picoseconds whole = transfer_time(bytes, profile.nic.dma_read_bandwidth());
    const Time start = nic_.dma_read.take(now, ready, whole) + profile.nic.pcie_read;
    // Each packet leaves as soon as it has been fetched.
    ready =
        start + transfer_time(std::min(bytes, end_.path().mtu), profile.nic.dma_read_bandwidth());
    fetched = start + whole;
    gather(flight.request.local, flight.payload);
  }
  end_.count_sent(on_wire);
  last_departure_ = nic_.link.take(now, std::max(ready, last_departure_),
                                   transfer_time(on_wire, profile.link.bandwidth));
  if (Multicast* const group = Multicast::current()) group->has_left({last_departure_, fetched});
  return fetched;
}

// The network makes a message of one that has left the device. Only its receiver has traffic.
Time Requester::take_copy(Flight& flight, Bytes on_wire) {
  const Multicast::Sent& sent = *Multicast::current()->sent();
  if (!flight.request.flags.inlined) gather(flight.request.local, flight.payload);
  end_.peer().nic().traffic.received += on_wire;
  last_departure_ = std::max(sent.departure, last_departure_);
  return sent.fetched;
}

// Delays the departure of a message by DelayChoices; the messages after it wait until it has left.
Time Requester::delayed(Time departure, Picoseconds wire) {
  departure =
      std::max(departure + perdura::sim::choose_delay(*network_.delays.messages), last_delayed_);
  last_delayed_ = departure + wire;
  return departure;
}

// Operations complete in the order posted: one that is answered before an earlier one waits for it.
void Requester::answered(Flight& flight) {
  if (flight.flushed) return network_.release(flight);
  flight.stage = Flight::Stage::completes;
  while (!outstanding_.empty() && outstanding_.front().stage == Flight::Stage::completes) {
    complete(outstanding_.take_front());
  }
}

void Requester::complete(Flight& flight) {
  if (flight.observed) [[unlikely]] {
    observer().completed(flight.observed_as, flight.status, network_.engine.now(),
                         awaited_by(flight));
  }
  const SimThread::CompletionArrives completion_arrives(end_.thread());
  --outstanding_count_;
  if (holds_up_fence(flight.request)) --awaited_by_fence_;
  if (flight.status == Status::success && flight.request.opcode == Opcode::read &&
      flight.operation != nullptr) {
    const LocalPieces& local = flight.request.local;
    std::span<const std::byte> data = flight.payload;
    if (local.is_one()) [[likely]] {
      model_of(*local.first().region).answer_arrived(local.first().offset, data, nic_.cause());
    } else {
      for (const LocalBuffer& piece : local.all()) {
        model_of(*piece.region)
            .answer_arrived(piece.offset, data.first(piece.length), nic_.cause());
        data = data.subspan(piece.length);
      }
    }
  }
  const Status status = flight.status;
  if (flight.operation != nullptr) flight.operation->complete(status, flight.old_value);
  network_.release(flight);
  if (status != Status::success) end_.enter_error();
  advance();
}

void Requester::flush() {
  for (auto* line : {&outstanding_, &waiting_}) {
    while (!line->empty()) {
      Flight* const flight = &line->take_front();
      if (RdmaOperation* operation = std::exchange(flight->operation, nullptr)) {
        operation->complete(Status::flushed);
      }
      // An operation that has left the device is released by an event that is scheduled already;
      // one that still waits, or is answered, has no such event, so it is released here.
      flight->flushed = true;
      if (line == &waiting_ || flight->stage == Flight::Stage::completes) {
        network_.release(*flight);
      }
    }
  }
  outstanding_count_ = 0;
  awaited_by_fence_ = 0;
}

void Requester::drop() {
  while (!outstanding_.empty()) {
    Flight& flight = outstanding_.take_front();
    if (flight.stage == Flight::Stage::completes) {
      network_.release(flight);
      continue;
    }
    flight.operation = nullptr;
    flight.flushed = true;
    cut_off(flight);
  }
  outstanding_count_ = 0;
  if (relaxed_) [[unlikely]]
    relaxed_->flush();
  while (!waiting_.empty()) network_.release(waiting_.take_front());
}

void Requester::cut_off() {
  outstanding_.for_each([this](Flight& flight) { cut_off(flight); });
}

void Requester::responder_died(Time at) {
  if (journal_) journal_->ended(connection_, at);
}

RelaxedPipe& Requester::relaxed() {
  if (relaxed_ == nullptr) relaxed_ = std::make_unique<RelaxedPipe>(end_);
  return *relaxed_;
}

// The packets that a requester had sent before it died still arrive. The last message may arrive
// only in part.
void Requester::cut_off(Flight& flight) {
  if (flight.way == Flight::Way::arrived) return;
  const perdura::sim::LinkProfile& path = end_.path();
  const bool carries_payload = is_posted(flight.request.opcode);
  const Bytes bytes = carries_payload ? flight.request.local.length() : 0;
  const Picoseconds packet = first_packet_time(path, bytes);
  const Time now = network_.engine.now();
  if (now >= flight.departure + wire_time(path, bytes)) return;
  const Bytes packets =
      now < flight.departure ? 0 : static_cast<Bytes>((now - flight.departure) / packet);
  flight.way = Flight::Way::cut_off;
  flight.payload.resize(std::min(bytes, packets * path.mtu));
}

void Requester::acknowledged(Flight& flight, Time sent, Time arrives) {
  const perdura::sim::NicProfile& nic = nic_.profile.nic;
  complete_at(flight, sent, arrives + nic.processing + nic.pcie_write);
}

Time Requester::take_answer(const Flight& flight, Bytes bytes, Time first_arrival,
                            Time last_arrival) {
  const Profile& profile = nic_.profile;
  Time received = nic_.receive.take(first_arrival, profile.nic.message) + profile.nic.processing;
  if (flight.request.opcode == Opcode::read) {
    received = nic_.find_local(received, flight.request.local, bytes);
  }
  const Picoseconds bus = transfer_time(bytes, profile.nic.pcie_bandwidth);
  const Picoseconds last_bus =
      transfer_time(std::min(bytes, end_.path().mtu), profile.nic.pcie_bandwidth);
  // All but the last packet are placed while the others arrive.
  const Time placed = nic_.dma_write.take(received, bus) + bus;
  return std::max(placed, last_arrival + profile.nic.processing + last_bus) +
         profile.nic.pcie_write;
}

void Requester::complete_at(Flight& flight, Time sent, Time at) {
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
void Requester::tell_completed(Flight& flight, Time sent) {
  flight.known = Flight::Known::executed;
  flight.sent = sent;
  outstanding_.for_each([this, all = true](Flight& next) mutable {
    all = all && next.known != Flight::Known::nothing;
    if (!all || next.known == Flight::Known::completes) return;
    next.known = Flight::Known::completes;
    last_told_ = std::max(last_told_, next.sent);
    unreported_.push_back(next.known_as);
    if (next.request.flags.commit) unreported_.push_back(next.committed_as);
    if (next.operation == nullptr) return;
    for (const auto& operation : unreported_) journal_->completed(operation, last_told_);
    unreported_.clear();
  });
}

}  // namespace perdura::fabric::sim
