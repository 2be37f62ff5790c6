#include "platform/fabric/sim/connection.h"

#include <cstdlib>
#include <cstring>

#include "platform/fabric/sim/packets.h"

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

pmem::RemoteKind remote_kind_of(const WorkRequest& request) {
  switch (kind_of(request.opcode)) {
    case WorkKind::posted:
      break;
    case WorkKind::read:
      return pmem::RemoteKind::read;
    case WorkKind::atomic:
      return pmem::RemoteKind::atomic;
    case WorkKind::flush:
      return request.placement == Placement::persistence ? pmem::RemoteKind::flush_persistence
                                                         : pmem::RemoteKind::flush;
  }
  return pmem::RemoteKind::posted;
}

}  // namespace

// --- shared by all connections -------------------------------------------------------------------

void Network::Callback::fire() {
  // The function may ask for another callback, and may then be given this object again.
  const std::function<void()> called = std::exchange(function, nullptr);
  network->free_callbacks_.push_back(this);
  called();
}

Network::Network(Engine& event_engine) : engine(event_engine) {}
Network::~Network() = default;

Flight& Network::new_flight() {
  if (free_flights_.empty()) return flights_.emplace_back();
  Flight& flight = *free_flights_.back();
  free_flights_.pop_back();
  return flight;
}

void Network::release(Flight& flight) {
  flight.operation = nullptr;
  flight.memory = nullptr;
  flight.status = Status::success;
  flight.old_value = 0;
  flight.flushed = false;
  flight.observed = false;
  flight.succeeded = false;
  flight.told = false;
  flight.arrived = false;
  flight.cut = false;
  flight.payload.clear();
  free_flights_.push_back(&flight);
}

void Network::after(Picoseconds delay, std::function<void()> function) {
  Callback* callback = nullptr;
  if (free_callbacks_.empty()) {
    callback = &callbacks_.emplace_back();
    callback->network = this;
  } else {
    callback = free_callbacks_.back();
    free_callbacks_.pop_back();
  }
  callback->function = std::move(function);
  const Time now = SimThread::running() != nullptr ? SimThread::running()->now() : engine.now();
  engine.schedule(now + delay, *callback);
}

End& Network::new_end(Nic& nic, SimThread& thread, Address address,
                      const QueuePairOptions& options) {
  return ends_.emplace_back(*this, nic, thread, address, options);
}

Time Network::end_begun(NodeId node) {
  Time last = engine.now();
  for (const End& end : ends_) {
    if (end.address().node != node) continue;
    last = std::max(last, end.busy_until_);
    if (end.peer_ != nullptr && end.peer_->relaxed_ != nullptr) end.peer_->relaxed_->finish();
  }
  for (const End& end : ends_) {
    if (end.address().node != node || end.peer_ == nullptr) continue;
    if (end.peer_->journal_) end.peer_->journal_->ended(end.peer_->connection_, last);
  }
  return last;
}

std::size_t Network::break_connections(Address at, Address peer) {
  std::size_t broken = 0;
  for (End& end : ends_) {
    if (!end.connected() || end.address() != at || end.peer_address() != peer) continue;
    end.break_off();
    ++broken;
  }
  return broken;
}

bool Network::connected(Address at, Address peer) const {
  return std::any_of(ends_.begin(), ends_.end(), [&](const End& end) {
    return end.connected() && end.address() == at && end.peer_address() == peer;
  });
}

void Flight::fire() {
  switch (stage) {
    case Stage::arrives:
      return from->peer_->arrived(*this);
    case Stage::responds:
      return from->peer_->first_packet_read(*this);
    case Stage::executes:
      return from->peer_->executed(*this);
    case Stage::answered:
      return from->answered(*this);
    case Stage::completes:
      return;  // nothing is scheduled
  }
}

Delivery& Network::new_delivery() {
  if (free_deliveries_.empty()) return deliveries_.emplace_back();
  Delivery& delivery = *free_deliveries_.back();
  free_deliveries_.pop_back();
  return delivery;
}

void Delivery::taken() {
  const SimThread* const thread = SimThread::running();
  journal->received(message, thread != nullptr ? thread->now() : end->network_.engine.now());
  end->network_.release(*this);
}

void End::report(ReceiveCompletion completion) {
  if (queue_pair_ == nullptr) {
    early_.push_back(completion);
    return;
  }
  completion.queue_pair = queue_pair_;
  const SimThread::CompletionArrives completion_arrives(thread_);
  options_.completions->push(completion);
}

void Delivery::fire() {
  if (end->state_ != End::State::closed && end->options_.completions != nullptr) {
    if (journal != nullptr) [[unlikely]]
      completion.observer = this;
    end->report(completion);
  }
  if (completion.observer == nullptr) [[likely]]
    end->network_.release(*this);
}

// --- receive queue -------------------------------------------------------------------------------

void SimReceiveQueue::post(const LocalPieces& buffer, std::uint64_t buffer_id) {
  if (posted_.size() >= depth_) std::abort();
  posted_.push_back({buffer, buffer_id});
}

// --- requester -----------------------------------------------------------------------------------

End::End(Network& network, Nic& nic, SimThread& thread, Address address,
         const QueuePairOptions& options)
    : network_(network),
      nic_(nic),
      receive_queue_(static_cast<SimReceiveQueue*>(options.receive_queue)),
      thread_(thread),
      address_(address),
      options_(options) {}

End::~End() = default;

void End::join(End& a, End& b) {
  a.peer_ = &b;
  b.peer_ = &a;
  for (End* end : {&a, &b}) {
    end->path_ = path_between(a.nic_.profile.link, b.nic_.profile.link);
    end->journal_ = end->peer_->nic_.journal;
    if (end->journal_) [[unlikely]]
      // A CPU's stores stay in its caches, like a device's placements with DDIO.
      end->connection_ = end->nic_.is_software ? end->journal_->connect_through_caches()
                                               : end->journal_->connect();
  }
}

void End::attach(QueuePair* queue_pair) {
  queue_pair_ = options_.reported_as != nullptr ? options_.reported_as : queue_pair;
  for (ReceiveCompletion& completion : early_) {
    completion.queue_pair = queue_pair_;
    options_.completions->push(completion);
  }
  early_.clear();
}

void End::post(const WorkRequest& request, RdmaOperation* operation) {
  if (SimThread::running() == &thread_) thread_.charge_time(nic_.profile.cpu.post);
  if (state_ != State::connected) {
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
  if (SimThread::running() == &thread_) thread_.pause_after_post();
}

std::coroutine_handle<> End::awaited_by(const Flight& flight) {
  return flight.operation != nullptr ? flight.operation->awaited_by() : std::coroutine_handle<>();
}

void End::observe(Flight& flight) const {
  const WorkRequest& request = flight.request;
  flight.observed = true;
  flight.observed_as = observer().posted(
      {address_, peer_->address_, request.opcode,
       request.opcode == Opcode::flush ? request.flush_length : request.local.length(),
       SimThread::running() == &thread_ ? thread_.now() : network_.engine.now(),
       awaited_by(flight)});
}

void End::advance() {
  while (!waiting_.empty() && outstanding_count_ < options_.send_depth) {
    Flight& flight = waiting_.front();
    if (flight.request.flags.fenced && awaited_by_fence_ > 0) return;
    waiting_.take_front();
    outstanding_.push_back(flight);
    ++outstanding_count_;
    if (fence_waits_for(kind_of(flight.request.opcode))) ++awaited_by_fence_;
    transmit(flight);
  }
}

void End::transmit(Flight& flight) {
  const Profile& profile = nic_.profile;
  if (journal_) [[unlikely]] {
    flight.known_as =
        journal_->post(connection_, remote_kind_of(flight.request), flight.request.flags.fenced);
    if (flight.observed && journal_->powered()) {
      observer().sent(flight.observed_as, journal_->machine(), flight.known_as);
    }
  }
  const Time now = network_.engine.now();
  const Time posted = SimThread::running() == &thread_ ? thread_.now() : now;
  // The doorbell, a posted PCIe write, starts the device.
  Time ready = nic_.transmit.take(now, posted + profile.nic.pcie_write, profile.nic.message) +
               profile.nic.processing;
  const bool carries_payload = is_posted(flight.request.opcode);
  const Bytes bytes = carries_payload ? flight.request.local.length() : 0;
  Time fetched = ready;
  if (bytes > 0 && !flight.request.flags.inlined) {
    ready = nic_.find_local(ready, flight.request.local, bytes);
    const Picoseconds whole = transfer_time(bytes, profile.nic.dma_read_bandwidth());
    const Time start = nic_.dma_read.take(now, ready, whole) + profile.nic.pcie_read;
    // Each packet leaves as soon as it has been fetched.
    ready = start + transfer_time(std::min(bytes, path_.mtu), profile.nic.dma_read_bandwidth());
    fetched = start + whole;
    gather(flight.request.local, flight.payload);
  }
  const Bytes on_wire = wire_bytes(path_, bytes);
  count_sent(on_wire);
  last_departure_ = nic_.link.take(now, std::max(ready, last_departure_),
                                   transfer_time(on_wire, profile.link.bandwidth));
  const Picoseconds wire = transfer_time(on_wire, path_.bandwidth);
  Time departure = enter_path(last_departure_, on_wire, last_request_arrives_);
  if (network_.delays.messages != nullptr) [[unlikely]]
    departure = delayed(departure, wire);
  flight.departure = departure;
  const Picoseconds first = first_packet_time(path_, bytes);
  flight.last_arrival = std::max(departure + wire, fetched + first) + path_.propagation;
  flight.stage = Flight::Stage::arrives;
  network_.engine.schedule(departure + first + path_.propagation, flight);
}

// Operations complete in the order posted: one that is answered before an earlier one waits for it.
void End::answered(Flight& flight) {
  if (flight.flushed) return network_.release(flight);
  flight.stage = Flight::Stage::completes;
  while (!outstanding_.empty() && outstanding_.front().stage == Flight::Stage::completes) {
    complete(outstanding_.take_front());
  }
}

void End::complete(Flight& flight) {
  if (flight.observed) [[unlikely]] {
    observer().completed(flight.observed_as, flight.status, network_.engine.now(),
                         awaited_by(flight));
  }
  const SimThread::CompletionArrives completion_arrives(thread_);
  --outstanding_count_;
  if (fence_waits_for(kind_of(flight.request.opcode))) --awaited_by_fence_;
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
  if (status != Status::success) enter_error();
  advance();
}

void End::enter_error() {
  if (state_ != State::connected) return;
  state_ = State::error;
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
  peer_->peer_has_flushed_ = true;
  if (network_.engine.relaxed()) [[unlikely]] {
    relaxed().flush();
    peer_->relaxed().finish();
  }
  // The end of a connection is reported after the last placement and the last atomic, when nothing
  // of the connection is under way any more.
  deliver({queue_pair_, Status::disconnected, {}, {}, 0},
          std::max({network_.engine.now(), last_placement_ + nic_.profile.nic.pcie_write,
                    last_atomic_}));
}

void End::close() {
  if (state_ == State::closed) return;
  const bool was_connected = state_ == State::connected;
  state_ = State::closed;
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
  peer_->peer_has_flushed_ = true;
  if (relaxed_) [[unlikely]]
    relaxed_->flush();
  while (!waiting_.empty()) network_.release(waiting_.take_front());
  if (options_.completions != nullptr && queue_pair_ != nullptr) {
    options_.completions->forget(*queue_pair_);
  }
  queue_pair_ = nullptr;
  if (was_connected) peer_->lose_connection(path_.propagation);
}

// Cuts the messages of this end that are on the wire, as the death of the requester would.
void End::break_off() {
  if (state_ != State::connected) return;
  outstanding_.for_each([this](Flight& flight) { cut_off(flight); });
  enter_error();
  peer_->lose_connection(nic_.profile.link.propagation);
}

// The packets that a requester had sent before it died still arrive. The last message may arrive
// only in part.
void End::cut_off(Flight& flight) {
  if (flight.arrived) return;
  const bool carries_payload = is_posted(flight.request.opcode);
  const Bytes bytes = carries_payload ? flight.request.local.length() : 0;
  const Picoseconds packet = first_packet_time(path_, bytes);
  const Time now = network_.engine.now();
  if (now >= flight.departure + wire_time(path_, bytes)) return;
  const Bytes packets =
      now < flight.departure ? 0 : static_cast<Bytes>((now - flight.departure) / packet);
  flight.cut = true;
  flight.payload.resize(std::min(bytes, packets * path_.mtu));
}

}  // namespace perdura::fabric::sim
