// The executor runs the tasks of one thread: an operating-system thread on the real platforms, a
// simulated thread on `sim`. Everything that suspends a task remembers the executor it suspended on
// and hands the task back to it; tasks never migrate.
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

  // The executor whose task is running now. Only valid inside a task.
  static Executor& current() { return *current_; }

  virtual Time now() const = 0;
  // The same for the start of an interval whose end is a now(); cheaper where the processor may
  // read the clock while it still works on what comes before (runtime/host_clock.h).
  virtual Time begin() const { return now(); }

  // Queues a suspended task of this executor; called on this executor's thread.
  virtual void make_ready(std::coroutine_handle<> task) = 0;

  // Queues it at `when` (or as soon as possible after it).
  virtual void make_ready_at(Time when, std::coroutine_handle<> task) = 0;

  // The same for what happens outside the modelled machines, such as the arrival of work: on `sim`
  // a thread that sleeps is then woken up in no time and at no cost.
  virtual void make_ready_from_outside_at(Time when, std::coroutine_handle<> task) {
    make_ready_at(when, task);
  }

  // Runs a task to its end without anybody awaiting it. An exception that leaves it ends the run. A
  // task may use what belongs to the one that spawned it only if that one does not end before it.
  void spawn(Task<> task);

  // Destroys the frames of all spawned tasks that have not ended, newest first.
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

  // Called when a spawned task threw; stops the run in the way of the platform.
  virtual void fail(std::exception_ptr error) = 0;

 private:
  static Task<> supervise(Executor& executor, std::list<Task<>>::iterator self, Task<> task);

  static inline thread_local Executor* current_ = nullptr;
  std::list<Task<>> spawned_;
  std::list<Task<>> ended_;  // frames that ended; a frame cannot destroy itself while it runs
};

// co_await sleep_until(t), sleep_for(d), arrival_at(t), yield(): give the thread to other tasks
// meanwhile.
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

// Until something arrives from outside (make_ready_from_outside_at).
inline ArrivalAwaiter arrival_at(Time when) { return {when}; }

struct YieldAwaiter {
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> task) const { Executor::current().make_ready(task); }
  void await_resume() const noexcept {}
};
inline YieldAwaiter yield() { return {}; }

}  // namespace perdura
