// Observes the events of a simulated run whose durability is tracked, so that the run can be
// explained afterwards: messages and one-sided operations, changes of persistent memory, the events
// that make it durable, failures and starts (SimPlatform::observe).
//
// Each function is called on the stack of the code that does what it reports, so that an observer
// may note the line of code. A time may lie ahead of the engine's, since a task runs ahead of the
// simulation; what the death of a process or a power failure then prevents is to be ignored.
// Observers must not change the run. Without one, the cost is a test of a pointer, and only where
// durability is tracked.
#pragma once

#include <coroutine>
#include <cstdint>
#include <span>
#include <string_view>

#include "platform/fabric/types.h"
#include "platform/pmem/model/loss.h"
#include "platform/pmem/model/persistence_state.h"

namespace perdura::sim {

class RunObserver {
 public:
  using NodeId = fabric::NodeId;
  using MessageId = std::uint64_t;
  using Model = pmem::PersistenceState;

  virtual ~RunObserver() = default;

  // A thread of a node begins.
  virtual void started(NodeId node, Time at) = 0;
  // The process of a node dies.
  virtual void died(NodeId node, Time at) = 0;
  // The machine of this node knows a persistent region by this number from now on.
  virtual void attached(NodeId machine, Model::RegionId region, std::string_view name) = 0;

  // --- messages ----------------------------------------------------------------------------------

  struct Posted {
    fabric::Address from;
    fabric::Address to;
    fabric::Opcode opcode{};
    Bytes bytes = 0;  // the payload, or the length requested
    Time at{};
    // The task that awaits its completion, if it already does so when the message is posted.
    std::coroutine_handle<> awaited_by{};
  };
  // Returns the number that identifies the message from now on.
  virtual MessageId posted(const Posted& message) = 0;
  // The journal of the responder's machine knows the message as this operation.
  virtual void sent(MessageId message, NodeId machine, Model::Operation known_as) = 0;
  // Its first packet reaches the responder's device.
  virtual void arrived(MessageId message, Time at) = 0;
  // The device begins to read or change this range of the machine's persistent memory, for a READ,
  // a FLUSH or an atomic. The range is empty if it is other memory.
  virtual void executed(MessageId message, Model::RegionAddress place, Bytes length, Time at) = 0;
  // The requester gets its completion, and so does the task that awaits it, if there is one.
  virtual void completed(MessageId message, fabric::Status status, Time at,
                         std::coroutine_handle<> awaited_by) = 0;
  // The responder's CPU takes the receive completion of the operation.
  virtual void received(NodeId machine, Model::Operation operation, Time at) = 0;

  // --- persistent memory -------------------------------------------------------------------------

  // A part of one line that is stored by a thread, or placed by a device as part of a message.
  struct MemoryChange {
    NodeId machine = 0;
    Model::RegionAddress place;
    std::span<const std::byte> bytes;
    Model::Writer writer = nullptr;  // the thread; null if it was a device
    Model::Operation operation;      // null if it was a thread
    Time at{};                       // when it becomes visible
  };
  virtual void changed(const MemoryChange& change) = 0;
  virtual void flushed(NodeId machine, Model::Writer writer, Model::RegionAddress place,
                       Bytes length, Time at) = 0;
  virtual void fenced(NodeId machine, Model::Writer writer, Time at) = 0;
  // The thread's process has died, so its stores after `from` do not happen.
  virtual void withdrawn(NodeId machine, Model::Writer writer, Time from) = 0;
  // The power of the machine fails, and these changes are lost.
  virtual void power_failed(NodeId machine, std::span<const pmem::Loss> losses, Time at) = 0;
};

}  // namespace perdura::sim
