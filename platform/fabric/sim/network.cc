#include "platform/fabric/sim/network.h"

#include <algorithm>
#include <utility>

#include "platform/fabric/sim/connection.h"
#include "platform/fabric/sim/relaxed_pipe.h"

namespace perdura::fabric::sim {

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
  flight.way = Flight::Way::leaves;
  flight.known = Flight::Known::nothing;
  flight.flushed = false;
  flight.observed = false;
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
  for (End& end : ends_) {
    if (end.address().node != node) continue;
    last = std::max(last, end.responder().busy_until());
    if (!end.has_peer()) continue;
    RelaxedPipe* const relaxed = end.peer().requester().relaxed_if_any();
    if (relaxed != nullptr) relaxed->finish();
  }
  for (End& end : ends_) {
    if (end.address().node != node || !end.has_peer()) continue;
    end.peer().requester().responder_died(last);
  }
  return last;
}

std::size_t Network::break_connections(Address at, Address peer) {
  std::size_t broken = 0;
  for (End& end : ends_) {
    if (!end.connected() || end.address() != at || end.peer().address() != peer) continue;
    end.break_off();
    ++broken;
  }
  return broken;
}

bool Network::connected(Address at, Address peer) const {
  return std::any_of(ends_.begin(), ends_.end(), [&](const End& end) {
    return end.connected() && end.address() == at && end.peer().address() == peer;
  });
}

Delivery& Network::new_delivery() {
  if (free_deliveries_.empty()) return deliveries_.emplace_back();
  Delivery& delivery = *free_deliveries_.back();
  free_deliveries_.pop_back();
  return delivery;
}

Targets Network::targets_in_extents(const Flight& flight) {
  pmem::sim::SimRegion& region = flight.memory->region();
  targets_.clear();
  for (const RegionPiece& piece : flight.pieces) {
    targets_.push_back({&region, piece.offset, piece.length});
  }
  if (targets_.empty()) return {{&region, 0, 0}, {}};
  return {targets_.front(), std::span(targets_).subspan(1)};
}

Targets Network::local_targets(const LocalPieces& local, Bytes length) {
  if (length == 0) return {};
  if (const LocalBuffer& first = local.first(); length <= first.length) [[likely]] {
    return {{&model_of(*first.region), first.offset, length}, {}};
  }
  targets_.clear();
  for (const LocalBuffer& piece : local.all()) {
    const Bytes part = std::min<Bytes>(piece.length, length);
    if (part != 0) targets_.push_back({&model_of(*piece.region), piece.offset, part});
    length -= part;
  }
  return {targets_.front(), std::span(targets_).subspan(1)};
}

void Network::list_steps(std::vector<RelaxedStep>& steps) {
  for (End& end : ends_) {
    if (RelaxedPipe* const relaxed = end.requester().relaxed_if_any()) relaxed->list(steps);
  }
}

void Network::append_state(std::string& state) const {
  for (const End& end : ends_) {
    const RelaxedPipe* const relaxed = end.requester().relaxed_if_any();
    if (relaxed != nullptr) relaxed->append_state(state);
    state += '|';
  }
}

}  // namespace perdura::fabric::sim
