// A message of a simulated reliable connection and its answer, from when the operation is posted
// until it has completed or has been flushed.
//
// A message goes through: transmit pipeline and payload fetch at the requester, the link, the
// receive pipeline, then at the responder the placement of a WRITE or SEND, the reading of a READ
// or the execution of an atomic, and the way back of the acknowledgment or response. Each step
// queues for the resource that it needs, so that contention is modelled everywhere.
// docs/simulation.md has a diagram.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "platform/fabric/fabric.h"
#include "platform/fabric/order/ordering.h"
#include "platform/fabric/sim/nic.h"
#include "platform/sim/kernel/engine.h"
#include "platform/sim/kernel/run_observer.h"

namespace perdura::fabric::sim {

class Requester;

constexpr WorkKind kind_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::write:
    case Opcode::write_with_immediate:
    case Opcode::send:
    case Opcode::append:
      break;
    case Opcode::read:
      return WorkKind::read;
    case Opcode::compare_and_swap:
    case Opcode::fetch_and_add:
    case Opcode::atomic_write:
      return WorkKind::atomic;
    case Opcode::flush:
    case Opcode::commit:
      return WorkKind::flush;
  }
  return WorkKind::posted;
}
constexpr bool is_posted(Opcode opcode) { return kind_of(opcode) == WorkKind::posted; }
constexpr bool is_atomic(Opcode opcode) { return kind_of(opcode) == WorkKind::atomic; }
// True if a fenced operation waits for this one: the commit at the end of a WRITE or APPEND is a
// FLUSH.
constexpr bool holds_up_fence(const WorkRequest& request) {
  return fence_waits_for(kind_of(request.opcode)) || request.flags.commit;
}

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
struct alignas(kCacheLine) Flight final : perdura::sim::Event {
  // The step that the flight's next event makes.
  enum class Stage : std::uint8_t {
    arrives,    // the first packet of the request reaches the responder
    responds,   // the first packet of a READ's data has been read
    executes,   // the operation takes effect at the responder
    answered,   // the answer reaches the requester
    completes,  // answered, but an earlier operation is not: there is no event
  };
  // The state of its request on the way to the responder.
  enum class Way : std::uint8_t {
    leaves,
    cut_off,  // the requester died before the last packet had left
    arrived,
  };
  // The knowledge of it that the responder's journal has, where durability is tracked.
  enum class Known : std::uint8_t {
    nothing,
    executed,   // it has succeeded; an earlier operation may still prevent its completion
    completes,  // the journal has been told that it completes
  };

  Stage stage = Stage::arrives;
  Status status = Status::success;
  Way way = Way::leaves;
  Known known = Known::nothing;
  bool flushed = false;  // completed early: its event only releases it
  bool observed = false;
  Requester* from = nullptr;
  RdmaOperation* operation = nullptr;  // null if unsignaled, or no longer awaited
  Nic::Registered* memory = nullptr;
  Flight* next = nullptr;           // the next one in the requester's queue
  Flight* next_held = nullptr;      // the next one that the responder holds
  std::vector<std::byte> payload;   // the data of the request, or of its answer
  std::vector<RegionPiece> pieces;  // the pieces of `memory`, if it consists of extents
  WorkRequest request;
  std::uint64_t old_value = 0;
  pmem::sim::Journal::Operation known_as;  // its number in the responder's journal, if there is one
  // The number of its commit there: the next one, if it is a WRITE or APPEND that ends with one.
  pmem::sim::Journal::Operation committed_as;
  Time departure{};             // when its first packet leaves
  Time last_arrival{};          // when its last packet arrives
  Time sent{};                  // when its answer leaves, if it has succeeded
  pmem::sim::LineTimes seen{};  // the times up to which a READ sees each line
  Time read_by{};               // when the last packet of a READ can be sent
  Time placed{};                // when the last packet of a READ is in the requester's memory
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

}  // namespace perdura::fabric::sim
