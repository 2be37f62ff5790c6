// The asynchronous forms of operations (MCAS, Tables 1 to 3: async_put, async_get, ...), for all of
// them alike: an operation is started, and its completion is polled or awaited later.
//
//   Pending<Bytes> pending(pool->get_direct(key, buffer));
//   while (!pending.completed()) co_await something_else();     // check_async_completion
//   const auto length = pending.take();
//
// An operation continues to its end even if this object is destroyed, since the shard may have
// begun it. So its arguments, such as the key and buffers, must stay valid until it has ended.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "platform/runtime/executor.h"
#include "platform/runtime/sync.h"
#include "services/objects/objects.h"

namespace perdura::objects {

template <class T>
class Pending {
 public:
  // Starts the operation on this thread's executor.
  explicit Pending(Task<Result<T>> operation) : state_(std::make_shared<State>()) {
    Executor::current().spawn(run(std::move(operation), state_));
  }

  // True if take() has something to return. The operation makes progress only while the calling
  // task waits for something, so that this thread's other tasks run.
  bool completed() const { return state_->result.has_value(); }
  Task<> wait_for_completion() {
    const std::shared_ptr<State> state = state_;
    while (!state->result) co_await wait(state->waiting);
  }
  // Returns the result. May be called once, after the operation has completed.
  Result<T> take() { return std::move(state_->result).value(); }

 private:
  struct State {
    std::optional<Result<T>> result;
    WaitList waiting;
  };
  static Task<> run(Task<Result<T>> operation, std::shared_ptr<State> state) {
    state->result.emplace(co_await std::move(operation));
    state->waiting.wake_all();
  }

  std::shared_ptr<State> state_;
};

}  // namespace perdura::objects
