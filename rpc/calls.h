// The client's side of requests and replies: the calls that a session has under way, and how an
// answer finds the one that it is for.
//
// A session has a fixed number of calls. An operation waits for a free one and has it until it
// ends, by a Lease; it may ask several times, one request after the other, and an operation that
// wants to have several requests under way takes several calls:
//
//   const auto lease = co_await calls.begin();
//   calls.expect(lease.call());
//   queue_pair.post_unsignaled(...);  // a request that says it is that of lease.call()
//   const auto answer = co_await calls.answer_to(lease.call(), completions, take);
//
// How a reply says which request it answers is the protocol's affair: by a number in the message,
// by the immediate, or by nothing but the order in which requests were sent (InOrder). `take` gets
// each completion that arrives, makes the answer of it, delivers that to its call, and sees to the
// receive buffer (receive_buffers.h). What answers no request, such as a notice of the server, it
// deals with itself.
//
// Who receives: whichever call waits takes the next completion, for itself or for another one, and
// when it has its answer, the next call that waits goes on. Nothing is received while no call
// waits. A session that must hear of notices at any time has a task of its own that receives, and
// its calls wait for what that delivers: answer_to(call).
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
  // Before anything else.
  void open(std::uint32_t count) {
    slots_ = std::vector<Slot>(count);
    free_.reserve(count);
    // The lowest first, so that few calls at a time touch little memory.
    for (std::uint32_t i = count; i > 0; --i) free_.push_back(i - 1);
  }
  std::uint32_t count() const { return static_cast<std::uint32_t>(slots_.size()); }

  // A call of an operation under way.
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
  // Waits for a free call, first come first served.
  Task<Lease> begin() {
    while (free_.empty()) co_await wait(waiting_for_free_);
    const Call call = free_.back();
    free_.pop_back();
    co_return Lease(*this, call);
  }

  // Before a request goes out whose answer shall be waited for.
  void expect(Call call) {
    slots_[call].expects = true;
    slots_[call].answer.reset();
  }
  bool expects(Call call) const { return call < slots_.size() && slots_[call].expects; }

  // The answer to the last request of a call; nothing if the connection broke before it came.
  // `take(completion)` gets all that arrives meanwhile; of the end of a connection it makes fail().
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
  // The same in a session with a task of its own that receives.
  Task<std::optional<Answer>> answer_to(Call call) {
    Slot& slot = slots_[call];
    while (!slot.answer && !broken_) co_await wait(slot.waiting);
    co_return result_of(slot);
  }

  // An answer that the call does not expect, because it has one or has ended, is dropped. False if
  // there is no such call.
  bool deliver(Call call, const Answer& answer) {
    if (call >= slots_.size()) return false;
    Slot& slot = slots_[call];
    if (!slot.expects) return true;
    slot.expects = false;
    slot.answer = answer;
    slot.waiting.wake_one();
    return true;
  }

  // The peer is gone, or does not answer as it should: nobody waits for it any more.
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

  std::optional<Answer> result_of(Slot& slot) {
    slot.expects = false;
    return std::exchange(slot.answer, std::nullopt);
  }
  // Another call receives from now on.
  void wake_next() {
    for (Slot& slot : slots_) {
      if (slot.waiting.wake_one()) return;
    }
  }
  void end(Call call) {
    slots_[call].expects = false;
    slots_[call].answer.reset();
    free_.push_back(call);
    waiting_for_free_.wake_one();
  }

  std::vector<Slot> slots_;
  std::vector<Call> free_;
  WaitList waiting_for_free_;
  bool receiving_ = false;  // some call is
  bool broken_ = false;
};

// Which call the next reply is for, where replies come in the order of their requests and name
// nothing.
class InOrder {
 public:
  void sent(Call call) { calls_.push_back(call); }
  // Nothing if there is no request that is not answered.
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
