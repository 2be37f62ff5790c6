// How work comes to an executor from elsewhere: from operating-system threads that belong to no
// platform (an application's, or those of a file system in user space), and from the tasks of other
// executors. Whoever posts it waits for its result without spinning; an executor that sleeps is
// woken by its doorbell, and one that has nothing in its inbox pays a load per turn.
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

namespace perdura::runtime {

class Inbox {
 public:
  explicit Inbox(Doorbell& doorbell) : doorbell_(&doorbell) {}
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // From any thread: `work`, a function without parameters that returns a Task<T>, is called on the
  // executor's thread, and lives until that task has ended. What one thread posts is begun in the
  // order in which it was posted; tasks that suspend take turns. The std::future<T> has the result,
  // or what the task threw, and after both are gone. If the executor stops before that, or has
  // stopped, the future throws std::future_error (broken_promise). Who gives up waiting drops the
  // future; the work goes on.
  //
  // `caller`: rung as soon as the future is ready, for tasks that wait for it.
  template <class Work>
  auto post(Work work, std::shared_ptr<Inbox> caller = nullptr) {
    using T = typename TaskResult<std::invoke_result_t<Work&>>::Type;
    Answer<T> answer{Bell(std::move(caller)), {}};
    std::future<T> result = answer.promise.get_future();
    push(perform(std::function<Task<T>()>(std::move(work)), std::move(answer)));
    return result;
  }

  // From any thread: the executor looks at what its tasks wait for (until() in thread_executor.h).
  void ring();

  // --- for the executor ------------------------------------------------------------------------

  bool has_work(std::memory_order order) const { return arrived_.load(order); }
  // Puts what has arrived into `tasks`, which is empty, in the order of its arrival.
  void take(std::vector<Task<>>& tasks);
  // The executor has stopped. What is there is destroyed, as is what comes.
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
  // Given or broken, whichever comes first; then the bell rings.
  template <class T>
  struct Answer {
    Bell bell;
    std::promise<T> promise;
  };

  // When it ends, nothing of the work is left.
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
  Doorbell* doorbell_;  // null once the executor has stopped
  std::atomic<bool> arrived_{false};
};

}  // namespace perdura::runtime
