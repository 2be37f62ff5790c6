// The state that all connections of a simulation share.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "platform/fabric/sim/flight.h"
#include "platform/sim/kernel/engine.h"
#include "platform/sim/kernel/thread.h"

namespace perdura::fabric::sim {

using perdura::sim::Engine;
using perdura::sim::Event;
using perdura::sim::SimThread;

class End;
class Responder;
struct RelaxedStep;

// A receive completion on its way to its queue. Where durability is tracked it lives until it is
// taken from the queue: only then does the responder's CPU know that the message has arrived.
struct Delivery final : Event, CompletionTaken {
  Responder* to = nullptr;
  ReceiveCompletion completion;
  pmem::sim::Journal* journal = nullptr;
  pmem::sim::Journal::Operation message;
  void fire() override;
  void taken() override;
};

// The choices that delay messages and devices in a simulation with times: each request, each
// answer, each receive completion on its way to the CPU, and each placement in the responder's
// memory is delayed by one of the values of choose_delay(). Whatever is late, a connection keeps
// the order in which its messages arrive, are placed, complete and are reported. Null: nothing is
// delayed.
struct DelayChoices {
  pmem::Choices* messages = nullptr;
  pmem::Choices* devices = nullptr;
};

class Network {
 public:
  explicit Network(Engine& event_engine);
  ~Network();
  Engine& engine;
  DelayChoices delays;

  Flight& new_flight();
  void release(Flight& flight);
  Delivery& new_delivery();
  void release(Delivery& delivery) {
    delivery.journal = nullptr;
    free_deliveries_.push_back(&delivery);
  }
  // Runs `function` after `delay`; for what happens rarely.
  void after(Picoseconds delay, std::function<void()> function);
  End& new_end(Nic& nic, SimThread& thread, Address address, const QueuePairOptions& options);
  // To be called before the connections of a node go away. Returns the time at which the node's
  // device has finished what it has begun for them; in a relaxed simulation it finishes at once.
  Time end_begun(NodeId node);
  // See SimPlatform::break_connections().
  std::size_t break_connections(Address at, Address peer);
  bool connected(Address at, Address peer) const;

  // The memory that an operation touches: at the responder, after the responder has found it, and
  // the first `length` bytes of local memory.
  Targets remote_targets(const Flight& flight, Bytes length) {
    const Nic::Registered& memory = *flight.memory;
    if (memory.extents != nullptr) [[unlikely]]
      return targets_in_extents(flight);
    return {{&memory.region(), memory.offset + flight.request.remote.offset, length}, {}};
  }
  Targets local_targets(const LocalPieces& local, Bytes length);

  // For relaxed simulations: the possible next steps of the devices, and their state.
  void list_steps(std::vector<RelaxedStep>& steps);
  void append_state(std::string& state) const;

 private:
  struct Callback final : Event {
    Network* network = nullptr;
    std::function<void()> function;
    void fire() override;
  };

  Targets targets_in_extents(const Flight& flight);

  std::vector<Target> targets_;  // the memory of the current operation, if it is in several pieces
  std::deque<Flight> flights_;
  std::vector<Flight*> free_flights_;
  std::deque<Delivery> deliveries_;
  std::vector<Delivery*> free_deliveries_;
  std::deque<End> ends_;  // kept to the end: messages under way refer to them
  std::deque<Callback> callbacks_;
  std::vector<Callback*> free_callbacks_;
};

}  // namespace perdura::fabric::sim
