// The client's side of requests and replies: the calls that a session has in flight, and how a
// reply finds its call.
//
// A session has a fixed number of calls. An operation waits for a free call and holds it, by a
// Lease, until the operation ends. It may make several requests one after the other with one call;
// for several requests in flight at once it needs several calls:
//
//   const auto lease = co_await calls.begin();
//   calls.expect(lease.call());
//   queue_pair.post_unsignaled(...);  // a request that says it is that of lease.call()
//   const auto answer = co_await calls.answer_to(lease.call(), completions, take);
//
// How a reply identifies its request is up to the protocol: by a number in the message, by the
// immediate, or by the order in which requests were sent (InOrder). The function `take` is given
// each completion that arrives. It turns the completion into an answer, delivers that to its call,
// and reposts the receive buffer (receive_buffers.h).
//
// Any waiting call receives the next completion, for itself or for another call; when it has its
// answer, the next waiting call takes over. Nothing is received while no call waits. A session that
// must handle notices at any time has its own receiving task (notices.h), and its calls wait for
// what that task delivers: answer_to(call).
//
// All of it belongs to one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "platform/fabric/fabric.h"

namespace perdura::rpc {

// The number of a call, below the number of calls of its session.
using Call = std::uint32_t;

template <class Answer>
class Calls {
 public:
  // Must be called first. `count` is the number of calls.
  void open(std::uint32_t count) {
    slots_ = std::vector<Slot>(count);
    free_.reserve(count);
    // Low numbers are taken first, so that few concurrent calls touch little memory.
    for (std::uint32_t i = count; i > 0; --i) free_.push_back(i - 1);
  }
  std::uint32_t count() const { return static_cast<std::uint32_t>(slots_.size()); }

  // Holds a call for an operation in flight.
  class Lease {
   public:
    Lease(Calls& calls, Call call) : calls_(&calls), call_(call) {}
    Lease(Lease&& other) noexcept
        : calls_(std::exchange(other.calls_, nullptr)), call_(other.call_) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (calls_ != nullptr) calls_->end(call_);
    }
    Call call() const { return call_; }

   private:
    Calls* calls_;
    Call call_;
  };
  // Waits for a free call. Operations get calls in the order in which they ask for them, even if a
  // call is free when one asks.
  Task<Lease> begin() {
    if (!free_.empty() && line_.empty()) co_return take_free();
    Turn turn(*this);
    while (free_.empty() || line_.front() != &turn) co_await wait(turn.waiting);
    co_return take_free();
  }

  // Must be called before a request is sent whose answer will be awaited.
  void expect(Call call) {
    slots_[call].expects = true;
    slots_[call].answer.reset();
  }
  bool expects(Call call) const { return call < slots_.size() && slots_[call].expects; }

  // Returns the answer to the last request of a call; nullopt if the connection broke first.
  // `take(completion)` is called for all completions that arrive meanwhile; it must call fail()
  // when the connection ends.
  template <class Take>
  Task<std::optional<Answer>> answer_to(Call call, fabric::CompletionQueue& completions,
                                        Take take) {
    Slot& slot = slots_[call];
    while (!slot.answer && !broken_) {
      if (receiving_) {
        co_await wait(slot.waiting);
        continue;
      }
      receiving_ = true;
      const fabric::ReceiveCompletion completion = co_await completions.next();
      receiving_ = false;
      take(completion);
    }
    if (!receiving_) wake_next();
    co_return result_of(slot);
  }
  // The same for sessions with their own receiving task.
  Task<std::optional<Answer>> answer_to(Call call) {
    Slot& slot = slots_[call];
    while (!slot.answer && !broken_) co_await wait(slot.waiting);
    co_return result_of(slot);
  }

  // Delivers an answer to its call. The answer is dropped if the call does not expect one, because
  // it has its answer already or has ended. False if there is no such call.
  bool deliver(Call call, const Answer& answer) {
    if (call >= slots_.size()) return false;
    Slot& slot = slots_[call];
    if (!slot.expects) return true;
    slot.expects = false;
    slot.answer = answer;
    slot.waiting.wake_one();
    return true;
  }

  // The peer is gone or violates the protocol: wakes all calls, which then have no answer.
  void fail() {
    broken_ = true;
    for (Slot& slot : slots_) slot.waiting.wake_all();
  }
  bool broken() const { return broken_; }

 private:
  struct Slot {
    bool expects = false;
    std::optional<Answer> answer;
    WaitList waiting;
  };

  // The place in line of an operation that waits for a free call. It may end before its turn comes.
  struct Turn {
    explicit Turn(Calls& of) : calls(of) { calls.line_.push_back(this); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
      std::erase(calls.line_, this);
      calls.wake_first_in_line();
    }
    Calls& calls;
    WaitList waiting{};
  };
  Lease take_free() {
    const Call call = free_.back();
    free_.pop_back();
    return Lease(*this, call);
  }
  void wake_first_in_line() {
    if (!free_.empty() && !line_.empty()) line_.front()->waiting.wake_one();
  }

  std::optional<Answer> result_of(Slot& slot) {
    slot.expects = false;
    return std::exchange(slot.answer, std::nullopt);
  }
  // Lets another waiting call receive.
  void wake_next() {
    for (Slot& slot : slots_) {
      if (slot.waiting.wake_one()) return;
    }
  }
  void end(Call call) {
    slots_[call].expects = false;
    slots_[call].answer.reset();
    free_.push_back(call);
    wake_first_in_line();
  }

  std::vector<Slot> slots_;
  std::vector<Call> free_;
  std::deque<Turn*> line_;  // operations that wait for a free call
  bool receiving_ = false;  // a call is receiving
  bool broken_ = false;
};

// Determines which call the next reply is for, if replies arrive in the order of their requests and
// carry no id.
class InOrder {
 public:
  void sent(Call call) { calls_.push_back(call); }
  // Returns nullopt if all requests have been answered.
  std::optional<Call> next() {
    if (calls_.empty()) return std::nullopt;
    const Call call = calls_.front();
    calls_.pop_front();
    return call;
  }

 private:
  std::deque<Call> calls_;
};

}  // namespace perdura::rpc
