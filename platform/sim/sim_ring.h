// A message ring of a simulated machine. A message can be popped when its producer's charges up to
// its publication are paid and the cache line of its slot has moved to the consumer's core
// (CpuProfile::line_transfer); the producer learns of a free slot with the same delay.
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
  // Throws UsageError if the shape is not possible.
  SimRing(std::string_view name, RingShape shape);

  const RingShape& shape() const { return shape_; }
  // Both throw UsageError if the end has an owner; they must be called by a task.
  std::unique_ptr<RingProducer> producer();
  std::unique_ptr<RingConsumer> consumer();

  // For child processes, whose ends have no exclusive owner. push() waits while the ring is full,
  // pop() while it is empty; once the ring is closed both return, pop() without a message.
  bool try_push(std::span<const std::byte> message);
  Task<> push(std::span<const std::byte> message);
  Task<std::optional<Bytes>> pop(std::span<std::byte> into);
  void close();

  // The thread's process has died: undoes what it would have pushed or popped after `from`
  // (Machine::begin_death).
  void withdraw(const SimThread& thread, Time from);

 private:
  class Producer;
  class Consumer;

  struct Message {
    std::vector<std::byte> bytes;
    SimThread* producer = nullptr;
    Time published{};
    Time visible{};  // to the consumer's core, if it polls the line
  };
  struct Popped {
    Message message;
    SimThread* consumer = nullptr;
    Time at{};
  };
  // A task that waits at one end; the other end determines the time at which it wakes.
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
  std::deque<Message> messages_;  // not yet popped
  // The last messages that were popped; with those that wait, as many as the ring has slots: a slot
  // is used again when the producer knows of its last pop.
  std::deque<Popped> popped_;
  Waiting* consumer_waits_ = nullptr;
  Waiting* producer_waits_ = nullptr;
  bool closed_ = false;
  bool has_producer_ = false;
  bool has_consumer_ = false;
};

}  // namespace perdura::sim
