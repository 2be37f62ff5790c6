// One end of a simulated reliable connection, and the messages under way between the two.
//
// A message goes through: transmit pipeline and payload fetch at the requester, the link, the
// receive pipeline, then at the responder the placement of a WRITE or SEND, the reading of a READ
// or the execution of an atomic, and the way back of the acknowledgment or response. Each step
// queues for the resource that it needs, so that contention is modelled everywhere.
// docs/simulation.md has a diagram.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "platform/fabric/fabric.h"
#include "platform/fabric/order/ordering.h"
#include "platform/fabric/sim/nic.h"
#include "platform/fabric/sim/relaxed_pipe.h"
#include "platform/runtime/ring.h"
#include "platform/sim/kernel/engine.h"
#include "platform/sim/kernel/run_observer.h"
#include "platform/sim/kernel/thread.h"

namespace perdura::fabric::sim {

using perdura::sim::Engine;
using perdura::sim::Event;
using perdura::sim::SimThread;

class End;
class RelaxedPipe;

constexpr WorkKind kind_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::write:
    case Opcode::write_with_immediate:
    case Opcode::send:
      break;
    case Opcode::read:
      return WorkKind::read;
    case Opcode::compare_and_swap:
    case Opcode::fetch_and_add:
    case Opcode::atomic_write:
      return WorkKind::atomic;
    case Opcode::flush:
      return WorkKind::flush;
  }
  return WorkKind::posted;
}
constexpr bool is_posted(Opcode opcode) { return kind_of(opcode) == WorkKind::posted; }
constexpr bool is_atomic(Opcode opcode) { return kind_of(opcode) == WorkKind::atomic; }

// A contiguous part of memory that a device reads or writes.
struct Target {
  pmem::sim::SimRegion* region = nullptr;
  Bytes offset = 0;
  Bytes length = 0;
};

// The parts of memory that an operation touches, in order: nearly always a single one.
struct Targets {
  Target first;
  std::span<const Target> more;  // the rest; valid until the next remote_targets() or
                                 // local_targets()

  template <class Visit>
  void for_each(Visit visit) const {
    visit(first);
    for (const Target& target : more) visit(target);
  }
};

// A message and its answer. The members that every event of it reads are on the first cache line.
struct alignas(kCacheLine) Flight final : Event {
  enum class Stage : std::uint8_t { arrives, responds, executes, answered, completes };

  Stage stage = Stage::arrives;
  Status status = Status::success;
  bool arrived = false;
  bool cut = false;      // the requester died before the last packet had left
  bool flushed = false;  // completed early; only its event is still to come
  bool observed = false;
  bool succeeded = false;  // its execution at the responder; only where durability is tracked
  bool told = false;       // the responder's journal knows that it completes
  End* from = nullptr;
  RdmaOperation* operation = nullptr;  // null if unsignaled, or no longer awaited
  Nic::Registered* memory = nullptr;
  Flight* next = nullptr;           // the next one in the requester's queue
  Flight* next_held = nullptr;      // the next one that the responder holds
  std::vector<std::byte> payload;   // the data of the request, or of its answer
  std::vector<RegionPiece> pieces;  // the pieces of `memory`, if it consists of extents
  WorkRequest request;
  std::uint64_t old_value = 0;
  pmem::sim::Journal::Operation known_as;  // its number in the responder's journal, if there is one
  Time departure{};                        // when its first packet leaves
  Time last_arrival{};                     // when its last packet arrives
  Time sent{};                             // when its answer leaves, if it has succeeded
  pmem::sim::LineTimes seen{};             // the times up to which a READ sees each line
  Time read_by{};                          // when the last packet of a READ can be sent
  Time placed{};  // when the last packet of a READ is in the requester's memory
  perdura::sim::RunObserver::MessageId observed_as = 0;  // if it is observed
  void fire() override;
};

// An intrusive FIFO queue of flights. A connection has only one or two of them, so a container
// would take more memory.
template <Flight* Flight::*kNext>
class FlightQueue {
 public:
  bool empty() const { return first_ == nullptr; }
  std::size_t size() const { return size_; }
  Flight& front() const { return *first_; }

  void push_back(Flight& flight) {
    flight.*kNext = nullptr;
    (first_ == nullptr ? first_ : last_->*kNext) = &flight;
    last_ = &flight;
    ++size_;
  }
  Flight& take_front() {
    Flight& flight = *first_;
    first_ = flight.*kNext;
    --size_;
    return flight;
  }
  template <class Visit>
  void for_each(Visit visit) {
    for (Flight* at = first_; at != nullptr; at = at->*kNext) visit(*at);
  }

 private:
  Flight* first_ = nullptr;
  Flight* last_ = nullptr;  // if there is any
  std::size_t size_ = 0;
};

// A receive completion on its way to its queue. Where durability is tracked it lives until it is
// taken from the queue: only then does the responder's CPU know that the message has arrived.
struct Delivery final : Event, CompletionTaken {
  End* end = nullptr;
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

// The state that all connections of a simulation share.
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

  std::vector<Target> targets;  // the memory of the current operation, if it is in several pieces

  // For relaxed simulations: the possible next steps of the devices, and their state.
  void list_steps(std::vector<RelaxedStep>& steps);
  void append_state(std::string& state) const;

 private:
  struct Callback final : Event {
    Network* network = nullptr;
    std::function<void()> function;
    void fire() override;
  };
  std::deque<Flight> flights_;
  std::vector<Flight*> free_flights_;
  std::deque<Delivery> deliveries_;
  std::vector<Delivery*> free_deliveries_;
  std::deque<End> ends_;  // kept to the end: messages under way refer to them
  std::deque<Callback> callbacks_;
  std::vector<Callback*> free_callbacks_;
};

class SimReceiveQueue final : public ReceiveQueue {
 public:
  explicit SimReceiveQueue(std::uint32_t depth) : depth_(depth) {}
  std::uint32_t depth() const override { return depth_; }
  void post(const LocalPieces& buffer, std::uint64_t buffer_id) override;

  struct Posted {
    LocalPieces buffer;
    std::uint64_t id;
  };
  bool empty() const { return posted_.empty(); }
  // The result is valid until the next post().
  const Posted& take() {
    const Posted& first = posted_.front();
    posted_.pop_front();
    return first;
  }

 private:
  std::uint32_t depth_;
  Ring<Posted> posted_;
};

class alignas(kCacheLine) End {
 public:
  End(Network& network, Nic& nic, SimThread& thread, Address address,
      const QueuePairOptions& options);
  ~End();

  // Both ends are made before they are joined.
  static void join(End& a, End& b);
  void attach(QueuePair* queue_pair);

  void post(const WorkRequest& request, RdmaOperation* operation);
  RelaxedPipe& relaxed();  // its operations in a relaxed simulation
  void close();            // the queue pair is being destroyed
  // The queue pair gets into the error state for a reason outside the model.
  void break_off();
  bool connected() const { return state_ == State::connected; }
  Address address() const { return address_; }
  Address peer_address() const { return peer_->address_; }
  std::size_t in_line() const { return waiting_.size(); }

 private:
  friend struct Flight;
  friend struct Delivery;
  friend class RelaxedPipe;
  friend class Network;
  enum class State : std::uint8_t { connected, error, closed };
  struct RetryTimer final : Event {
    explicit RetryTimer(End& its_end) : end(its_end) {}
    End& end;
    void fire() override { end.retry_held(); }
  };

  // When a message starts to cross to the other end: its own link has it from `departure` on. The
  // receiver's link has it while it arrives, so it arrives at once if no other message does, and
  // else it waits before that link. Messages of a connection arrive in their order: no part of this
  // one arrives before `last_arrival`, the end of the one before it, which is moved on.
  Time enter_path(Time departure, Bytes on_wire, Time& last_arrival) {
    const Time arrival = peer_->nic_.link_in.take(
        network_.engine.now(), std::max(departure + path_.propagation, last_arrival),
        perdura::sim::transfer_time(on_wire, peer_->nic_.profile.link.bandwidth));
    last_arrival = arrival + perdura::sim::transfer_time(on_wire, path_.bandwidth);
    return arrival - path_.propagation;
  }
  // Delays the departure of a message by DelayChoices; the messages after it wait until it has
  // left.
  Time delayed(Time departure, Picoseconds wire) {
    departure =
        std::max(departure + perdura::sim::choose_delay(*network_.delays.messages), last_delayed_);
    last_delayed_ = departure + wire;
    return departure;
  }
  void count_sent(Bytes on_wire) {
    nic_.traffic.sent += on_wire;
    peer_->nic_.traffic.received += on_wire;
  }

  // To be called only for flights that are observed.
  perdura::sim::RunObserver& observer() const { return *journal_->observer(); }
  void observe(Flight& flight) const;
  static std::coroutine_handle<> awaited_by(const Flight& flight);

  // Requester.
  void advance();
  void transmit(Flight& flight);
  void answered(Flight& flight);
  void complete(Flight& flight);
  void cut_off(Flight& flight);
  void enter_error();

  // Responder.
  void arrived(Flight& flight);
  bool process(Flight& flight);  // false: no receive buffer
  Targets remote_targets(const Flight& flight, Bytes length) const {
    const Nic::Registered& memory = *flight.memory;
    if (memory.extents != nullptr) [[unlikely]]
      return targets_in_extents(flight);
    return {{&memory.region(), memory.offset + flight.request.remote.offset, length}, {}};
  }
  // Returns the time from which on an operation of this kind may take effect: not before the earlier
  // operations of other kinds that it must not overtake. The device executes operations of the same
  // kind in the order in which they arrive.
  template <WorkKind kKind>
  Time behind_earlier(Time at) const {
    static_assert(kKind == WorkKind::read || order_of(WorkKind::read, kKind) != Order::kept,
                  "no time is kept of a READ for other operations to wait for");
    const auto await = [&](WorkKind earlier, Time last) {
      if (earlier != kKind && order_of(earlier, kKind) == Order::kept) at = std::max(at, last);
    };
    await(WorkKind::posted, last_placement_);
    await(WorkKind::atomic, last_atomic_);
    await(WorkKind::flush, last_push_);
    return at;
  }
  Targets targets_in_extents(const Flight& flight) const;
  Targets local_targets(const LocalPieces& local, Bytes length) const;
  void place(Flight& flight, const Targets& targets, Time at);
  std::int64_t write_targets(const Targets& targets, Bytes bytes, Time start, Time& end) const;
  void place_in_turn(const Flight& flight, const Targets& targets, Time next, Picoseconds per_line);
  void execute_read(Flight& flight, Time at);
  void execute_at(Flight& flight, Time at);
  void keep_busy(Flight& flight, Time until);
  static void observe_execution(const Flight& flight, const Target& target, Time at);
  void first_packet_read(Flight& flight);
  void executed(Flight& flight);
  void acknowledge(Flight& flight, Time at);
  Time send_response(Flight& flight, Bytes bytes, Time last_packet);
  void respond(Flight& flight);
  void refuse(Flight& flight, Status status, Time at);
  void complete_at(Flight& flight, Time sent, Time at);
  void tell_completed(Flight& flight, Time sent);
  Delivery& deliver(const ReceiveCompletion& completion, Time at);
  void report(ReceiveCompletion completion);
  void retry_held_later();
  void retry_held();
  bool lacks_buffer_again();
  void lose_connection(Picoseconds delay);

  // The members that a message without a receive buffer reads on every retry, which happens
  // thousands of times, are on the first cache line.
  RetryTimer retry_timer_{*this};
  Network& network_;
  Nic& nic_;
  SimReceiveQueue* receive_queue_;
  // Messages that have arrived while the first of them found no receive buffer. The timer runs
  // while this is not empty.
  FlightQueue<&Flight::next_held> held_;
  std::uint32_t rnr_retries_ = 0;
  State state_ = State::connected;
  bool peer_has_flushed_ = false;  // so held messages may be flushed, too

  SimThread& thread_;
  Address address_;
  QueuePairOptions options_;
  QueuePair* queue_pair_ = nullptr;  // named in completions
  End* peer_ = nullptr;
  perdura::sim::LinkProfile path_;  // the link between the two nodes

  FlightQueue<&Flight::next> waiting_;      // posted, not yet started
  FlightQueue<&Flight::next> outstanding_;  // started, not yet completed
  std::uint32_t outstanding_count_ = 0;
  std::uint32_t awaited_by_fence_ = 0;  // those of them that a fence waits for
  Time last_departure_{};
  Time last_request_arrives_{};
  Time last_answer_arrives_{};
  Time last_answer_{};  // when the last one began to leave

  Time last_placement_{};
  Time last_atomic_{};  // when the last atomic that has begun takes effect
  Time last_push_{};    // when the last FLUSH began to push
  Time busy_until_{};   // when the device has ended all that it has begun
  std::uint32_t placements_ = 0;
  Time last_delivery_{};
  // Completions that were delivered before the connecting task had its queue pair, because the peer
  // was quick or died.
  std::vector<ReceiveCompletion> early_;

  // The journal of the peer's node, and its number for this direction of the connection; null
  // unless durability is tracked.
  std::shared_ptr<pmem::sim::Journal> journal_;
  pmem::sim::Journal::ConnectionId connection_ = 0;
  std::vector<pmem::sim::Journal::Operation> unreported_;  // completed, but not awaited
  Time last_told_{};  // when the last operation that the journal knows of completed

  Time last_delayed_{};  // when the last message that may have been delayed has left

  std::unique_ptr<RelaxedPipe> relaxed_;  // null until it posts in a relaxed simulation
};

}  // namespace perdura::fabric::sim
