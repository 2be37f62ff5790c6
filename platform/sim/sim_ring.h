// A message ring of a simulated machine. A message can be popped when its producer's charges up to
// its publication are paid and the cache line of its slot has gone to the consumer's core
// (CpuProfile::line_transfer); a free slot is known to the producer as much later.
#pragma once

#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "platform/message_ring.h"
#include "platform/sim/kernel/thread.h"

namespace perdura::sim {

class SimRing : public std::enable_shared_from_this<SimRing> {
 public:
  // Throws UsageError if the shape cannot be.
  SimRing(std::string_view name, RingShape shape);

  const RingShape& shape() const { return shape_; }
  // Both throw UsageError if the end has an owner; they must be called by a task.
  std::unique_ptr<RingProducer> producer();
  std::unique_ptr<RingConsumer> consumer();

  // For child processes, which have no ends that others could own. push() waits while the ring is
  // full, pop() while it is empty; once it is closed they return instead, pop() nothing.
  bool try_push(std::span<const std::byte> message);
  Task<> push(std::span<const std::byte> message);
  Task<std::optional<Bytes>> pop(std::span<std::byte> into);
  void close();

  // The thread's process has died: what it would have pushed or popped after `from` has not
  // happened (Machine::begin_death).
  void withdraw(const SimThread& thread, Time from);

 private:
  class Producer;
  class Consumer;

  struct Message {
    std::vector<std::byte> bytes;
    SimThread* producer = nullptr;
    Time published{};
    Time visible{};  // to the consumer's core, if it looks at the line all the time
  };
  struct Popped {
    Message message;
    SimThread* consumer = nullptr;
    Time at{};
  };
  // A task that waits at an end; it wakes at a time that the other end says.
  struct Waiting {
    std::coroutine_handle<> task;
    SimThread* thread = nullptr;
    Waiting** place = nullptr;
    explicit Waiting(Waiting*& at) : place(&at) {}
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting() {
      if (*place == this) *place = nullptr;
    }
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> waits);
    void await_resume() const {}
  };
  static void wake(Waiting*& waiting, Time when);

  std::optional<Bytes> try_pop(std::span<std::byte> into);
  bool has_space(Time now) const;
  Time space_from() const;

  std::string name_;
  RingShape shape_;
  std::deque<Message> messages_;  // that wait to be popped
  // The last messages that were popped, with those that wait as many as the ring has slots: a slot
  // is used again when its last pop is known.
  std::deque<Popped> popped_;
  Waiting* consumer_waits_ = nullptr;
  Waiting* producer_waits_ = nullptr;
  bool closed_ = false;
  bool has_producer_ = false;
  bool has_consumer_ = false;
};

}  // namespace perdura::sim
