// A message ring in memory that two processes map.
//
//   header    the shape; how many messages have been popped; the owner of each end
//   slot 0    number of its message + 1, stored last; the message's length; the message
//   slot 1    ...
//
// Message n is in slot n mod slots. Its number is stored when it is complete, so that a producer
// that dies before that has not pushed it, and the producer's successor finds where to continue.
// Whatever the other process writes there, an end accesses nothing outside of the ring and of its
// buffers.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "platform/message_ring.h"

namespace perdura {

// An end, and how to wake the thread that waits there.
struct RingEnd {
  alignas(kCacheLine) std::atomic<std::uint64_t> owner;  // the owner's life (shm_ring.h); 0: none
  std::atomic<std::uint32_t> doorbell;  // number of its thread's doorbell, + 1; 0: none
  // Set by the owner while it waits, and perhaps sleeps, for the other end.
  std::atomic<std::uint32_t> waits;
};

struct RingHeader {
  std::atomic<std::uint64_t> shape;  // slots << 32 | message size; 0 in new memory
  RingEnd producer;
  RingEnd consumer;
  alignas(kCacheLine) std::atomic<std::uint64_t> popped;  // messages, since the ring was made
};

class MappedRing {
 public:
  static Bytes size(RingShape shape);

  // `memory`: size(shape) bytes, zeros if new; kept alive by `keeper`. `wake` is called for the end
  // whose owner waits.
  MappedRing(std::byte* memory, RingShape shape, std::shared_ptr<void> keeper,
             std::function<void(RingEnd&)> wake);

  const RingShape& shape() const { return shape_; }
  RingHeader& header() const { return *reinterpret_cast<RingHeader*>(memory_); }

 private:
  friend class MappedProducer;
  friend class MappedConsumer;
  // Begins a cache line, which also contains the beginning of the message: a short message needs a
  // single line.
  struct Slot {
    std::atomic<std::uint64_t> number;  // number of the message in it, + 1
    std::atomic<std::uint64_t> length;
  };

  Slot& slot(std::uint64_t message) const;
  static std::byte* content(Slot& slot) { return reinterpret_cast<std::byte*>(&slot + 1); }
  static bool holds(const Slot& slot, std::uint64_t message) {
    return slot.number.load(std::memory_order_seq_cst) == message + 1;
  }
  // A change of the ring must be made by a sequentially consistent read-modify-write, followed by
  // this call for the other end.
  void wake(RingEnd& end) const {
    if (end.waits.load(std::memory_order_seq_cst) != 0) wake_(end);
  }

  RingShape shape_;
  Bytes slot_size_;
  std::byte* memory_;
  std::shared_ptr<void> keeper_;
  std::function<void(RingEnd&)> wake_;
};

// The ends. A thread that waits must set `waits` of its own end before it looks for the last time.
class MappedProducer {
 public:
  explicit MappedProducer(MappedRing ring);
  bool try_push(std::span<const std::byte> message);
  bool has_space();
  RingEnd& end() const { return ring_.header().producer; }

 private:
  MappedRing ring_;
  void advance() { slot_ = &ring_.slot(++next_); }

  std::uint64_t next_ = 0;            // number of the next message
  MappedRing::Slot* slot_ = nullptr;  // the slot of the next message
  std::uint64_t popped_ = 0;          // a lower bound of the number of popped messages
};

class MappedConsumer {
 public:
  explicit MappedConsumer(MappedRing ring) : ring_(std::move(ring)) {
    next_ = ring_.header().popped.load();
    slot_ = &ring_.slot(next_);
  }
  std::optional<Bytes> try_pop(std::span<std::byte> into);
  bool has_message() const { return MappedRing::holds(*slot_, next_); }
  RingEnd& end() const { return ring_.header().consumer; }

 private:
  MappedRing ring_;
  std::uint64_t next_ = 0;            // number of the message to be popped
  MappedRing::Slot* slot_ = nullptr;  // the slot of that message
};

}  // namespace perdura
