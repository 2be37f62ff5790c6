// A queue through which other threads hand work to an executor: operating-system threads that
// belong to no platform (an application's, or those of a file system in user space), and tasks of
// other executors. The poster can wait for the result without spinning. Posting wakes a sleeping
// executor through its doorbell; an empty inbox costs the executor one load per turn.
//
//   std::future<std::uint64_t> number = inbox->post([log] { return log->append_next(); });
//   if (number.wait_until(deadline) == std::future_status::ready) use(number.get());
//
// The inbox may outlive its executor, so that posting is always allowed.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "platform/runtime/doorbell.h"
#include "platform/runtime/task.h"

namespace perdura::host {

class Inbox {
 public:
  explicit Inbox(runtime::Doorbell& doorbell) : doorbell_(&doorbell) {}
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // May be called by any thread. `work`, a function without parameters that returns a Task<T>, is
  // called on the executor's thread and lives until that task has ended. Work posted by one thread
  // begins in the order in which it was posted; tasks that suspend take turns. The std::future<T>
  // becomes ready with the result, or the exception that the task threw, when the work and its task
  // have been destroyed. If the executor stops first, or has stopped already, the future throws
  // std::future_error (broken_promise). A caller that no longer wants to wait may drop the future;
  // the work goes on.
  //
  // `caller`: the inbox of the executor whose task waits for the future; it is rung as soon as the
  // future is ready.
  template <class Work>
  auto post(Work work, std::shared_ptr<Inbox> caller = nullptr) {
    using T = typename TaskResult<std::invoke_result_t<Work&>>::Type;
    Answer<T> answer{Bell(std::move(caller)), {}};
    std::future<T> result = answer.promise.get_future();
    push(perform(std::function<Task<T>()>(std::move(work)), std::move(answer)));
    return result;
  }

  // Makes the executor check the conditions on which its tasks wait (until() in thread_executor.h).
  // May be called by any thread.
  void ring();

  // --- for the executor ------------------------------------------------------------------------

  bool has_work(std::memory_order order) const { return arrived_.load(order); }
  // Moves the tasks that have arrived into `tasks`, which must be empty, in the order of arrival.
  void take(std::vector<Task<>>& tasks);
  // Called when the executor has stopped. Destroys the tasks in the inbox, and any that are posted
  // later.
  void close();

 private:
  template <class>
  struct TaskResult;
  template <class T>
  struct TaskResult<Task<T>> {
    using Type = T;
  };

  struct Bell {
    std::shared_ptr<Inbox> inbox;
    explicit Bell(std::shared_ptr<Inbox> to_ring) : inbox(std::move(to_ring)) {}
    Bell(Bell&&) = default;
    Bell& operator=(Bell&&) = delete;
    ~Bell() {
      if (inbox != nullptr) inbox->ring();
    }
  };
  // Members are destroyed in reverse order: the promise is fulfilled or broken first, then the bell
  // rings.
  template <class T>
  struct Answer {
    Bell bell;
    std::promise<T> promise;
  };

  // When this coroutine has ended, the work and its task are destroyed.
  template <class T>
  static Task<T> call(std::function<Task<T>()> work) {
    co_return co_await work();
  }
  template <class T>
  static Task<> perform(std::function<Task<T>()> work, Answer<T> of_caller) {
    Answer<T> answer = std::move(of_caller);
    try {
      if constexpr (std::is_void_v<T>) {
        co_await call(std::move(work));
        answer.promise.set_value();
      } else {
        T result = co_await call(std::move(work));
        answer.promise.set_value(std::move(result));
      }
    } catch (...) {
      answer.promise.set_exception(std::current_exception());
    }
  }

  void push(Task<> task);

  std::mutex mutex_;
  std::vector<Task<>> line_;
  runtime::Doorbell* doorbell_;  // null once the executor has stopped
  std::atomic<bool> arrived_{false};
};

}  // namespace perdura::host
