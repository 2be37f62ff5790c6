// A ring of messages in memory that two processes of a machine share: a bounded FIFO queue with one
// producer and one consumer, for processes that hand work to each other without a network.
//
//   auto out = rings_of(thread.node).open_producer("requests", {.slots = 64, .message_size = 256});
//   co_await out->push(message);
//   ...                                                   // in another process of the machine
//   auto in = rings_of(thread.node).open_consumer("requests", {.slots = 64, .message_size = 256});
//   const Bytes length = co_await in->pop(buffer);
//
// The ring is made when its first end is opened; it lives in DRAM until the machine's power fails
// or the job ends. Messages arrive whole, once, and in the order pushed. Both ends may be opened
// again later, by the same or by another process, when the previous owner has closed it or has
// died; the ring then continues where it was:
//
//   - a producer that dies in the middle of a push has not pushed, and the ring stays readable;
//   - a consumer that dies in the middle of a pop leaves the message to its successor, who perhaps
//     pops it a second time, since a process may act on a message and die at any later moment.
//
// A consumer that waits sleeps or polls as its thread does (CompletionMode); pushing wakes it. An
// end belongs to the thread that opened it, and one of its tasks at a time waits there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "platform/platform.h"

namespace perdura {

// The shape of a ring; it must be the same for both ends.
struct RingShape {
  std::uint32_t slots = 0;         // messages that fit
  std::uint32_t message_size = 0;  // bytes of the longest message
  bool operator==(const RingShape&) const = default;
};

class RingProducer {
 public:
  virtual ~RingProducer() = default;
  // Copies a message into the ring; waits while the ring is full. Throws UsageError if the message
  // is too long.
  virtual Task<> push(std::span<const std::byte> message) = 0;
  // Like push(), without waiting; returns false if the ring is full.
  virtual bool try_push(std::span<const std::byte> message) = 0;
};

class RingConsumer {
 public:
  virtual ~RingConsumer() = default;
  // Copies the oldest message to the beginning of `into` and returns its length; waits while there
  // is none. Throws UsageError if `into` cannot hold the longest message.
  virtual Task<Bytes> pop(std::span<std::byte> into) = 0;
  // Like pop(), without waiting; returns nullopt if there is no message.
  virtual std::optional<Bytes> try_pop(std::span<std::byte> into) = 0;
};

// The rings of a node's machine. Rings of different machines are independent.
class MessageRings {
 public:
  // To be called by a task of the thread that will use the end. Both throw UsageError if that end
  // of the ring has an owner, the ring exists with another shape, or the shape or name is not
  // possible. The rules for names are those of PM regions.
  virtual std::unique_ptr<RingProducer> open_producer(std::string_view name, RingShape shape) = 0;
  virtual std::unique_ptr<RingConsumer> open_consumer(std::string_view name, RingShape shape) = 0;

 protected:
  ~MessageRings() = default;
};

// Throws UsageError if the node's platform has none: `sim` and `shm` have them. Nodes of `verbs`
// may be on different hosts, and share no memory.
MessageRings& rings_of(Node& node);

// For implementations: they throw UsageError unless the message fits a slot, the longest message
// fits the room for it, and the shape is possible, respectively.
void check_ring_message(const RingShape& shape, std::size_t length);
void check_ring_room(const RingShape& shape, std::size_t room);
void check_ring_shape(std::string_view name, const RingShape& shape);

}  // namespace perdura
