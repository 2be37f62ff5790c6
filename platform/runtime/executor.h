// The executor runs the tasks of one thread: an operating-system thread on the real platforms, a
// simulated thread on `sim`. Whatever suspends a task remembers that task's executor and later
// makes the task ready there; tasks never migrate between executors.
#pragma once

#include <coroutine>
#include <functional>
#include <list>

#include "platform/base/units.h"
#include "platform/runtime/task.h"

namespace perdura {

class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  // The executor whose task is running now. May be called only inside a task.
  static Executor& current() { return *current_; }

  virtual Time now() const = 0;
  // The time for the start of an interval that ends with a now(). It can be cheaper than now(),
  // since the processor may read the clock before preceding instructions have finished
  // (runtime/host_clock.h).
  virtual Time begin() const { return now(); }

  // Queues a suspended task of this executor; called on this executor's thread.
  virtual void make_ready(std::coroutine_handle<> task) = 0;

  // Like make_ready(), for the running task, which lets others run first.
  virtual void make_ready_again(std::coroutine_handle<> task) { make_ready(task); }

  // Queues a suspended task of this executor at `when`, or as soon as possible after it.
  virtual void make_ready_at(Time when, std::coroutine_handle<> task) = 0;

  // Like make_ready_at(), for events that come from outside the modelled machines, such as the
  // arrival of a request in an open loop: on `sim`, waking a sleeping thread then takes no time and
  // costs nothing.
  virtual void make_ready_from_outside_at(Time when, std::coroutine_handle<> task) {
    make_ready_at(when, task);
  }

  // Runs a task that nobody awaits. An exception that the task does not catch ends the run. The
  // spawned task may use local variables of the task that spawned it only if that task outlives it.
  void spawn(Task<> task);

  // Destroys the frames of all spawned tasks: those that have not ended, newest first, then the
  // rest.
  void destroy_tasks() {
    while (!spawned_.empty()) spawned_.pop_back();
    ended_.clear();
  }

 protected:
  class Activation {
   public:
    explicit Activation(Executor& executor) : previous_(std::exchange(current_, &executor)) {}
    ~Activation() { current_ = previous_; }
    Activation(const Activation&) = delete;
    Activation& operator=(const Activation&) = delete;

   private:
    Executor* previous_;
  };

  // Called when a spawned task has thrown `error`; stops the run as the platform does it.
  virtual void fail(std::exception_ptr error) = 0;

 private:
  static Task<> supervise(Executor& executor, std::list<Task<>>::iterator self, Task<> task);

  static inline thread_local Executor* current_ = nullptr;
  std::list<Task<>> spawned_;
  std::list<Task<>> ended_;  // ended, not yet destroyed: a running frame cannot destroy itself
  std::list<Task<>> free_;   // list nodes of tasks that have ended, for spawn()
};

// Awaitables: sleep_until(t), sleep_for(d), arrival_at(t) and yield(). Other tasks of the thread
// run meanwhile.
struct SleepAwaiter {
  Time when;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> task) const {
    Executor::current().make_ready_at(when, task);
  }
  void await_resume() const noexcept {}
};
struct ArrivalAwaiter {
  Time when;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> task) const {
    Executor::current().make_ready_from_outside_at(when, task);
  }
  void await_resume() const noexcept {}
};
inline SleepAwaiter sleep_until(Time when) { return {when}; }
inline SleepAwaiter sleep_for(Picoseconds duration) {
  return {Executor::current().now() + duration};
}

// Suspends until an event that comes from outside the modelled machines
// (make_ready_from_outside_at).
inline ArrivalAwaiter arrival_at(Time when) { return {when}; }

struct YieldAwaiter {
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> task) const {
    Executor::current().make_ready_again(task);
  }
  void await_resume() const noexcept {}
};
inline YieldAwaiter yield() { return {}; }

}  // namespace perdura
