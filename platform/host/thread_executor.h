// The executor of the real platforms: one for each operating-system thread. One turn of its loop
// runs the tasks that are ready, fires the timers that are due and calls the pollers (the fabric's
// endpoint). When there is nothing to do, it spins in polling mode, yielding the core from time to
// time in case there are more threads than cores, and sleeps on its doorbell in event mode.
#pragma once

#include <atomic>
#include <coroutine>
#include <exception>
#include <functional>
#include <vector>

#include "platform/host/inbox.h"
#include "platform/host/spinning.h"
#include "platform/platform.h"
#include "platform/runtime/doorbell.h"
#include "platform/runtime/executor.h"
#include "platform/runtime/host_clock.h"
#include "platform/runtime/ring.h"

namespace perdura::host {

// A source of work besides tasks and timers.
class Poller {
 public:
  virtual ~Poller() = default;
  // Does pending work; returns true if there was any. Other threads announce work by a sequentially
  // consistent read-modify-write of memory that poll() reads, and then ring the executor's
  // doorbell.
  virtual bool poll() = 0;
  // The executor calls this before the thread sleeps, and then calls poll() once more. Returns a
  // file descriptor that becomes readable when there is work that the doorbell does not announce,
  // or -1. A descriptor requires a doorbell with an eventfd.
  virtual int arm() { return -1; }
  // The time at which poll() must be called even if the doorbell has not been rung.
  virtual Time due() const { return Time::max(); }
};

class ThreadExecutor;

// A task that waits for a condition on memory that other threads or processes change.
class Condition {
 public:
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;
  virtual ~Condition();

 protected:
  explicit Condition(Time deadline) : deadline_(deadline) {}
  virtual bool holds() const = 0;
  void enlist(ThreadExecutor& executor, std::coroutine_handle<> task);
  bool held_ = false;

 private:
  friend class ThreadExecutor;
  Time deadline_;
  ThreadExecutor* executor_ = nullptr;
  std::coroutine_handle<> task_;
};

class ThreadExecutor final : public Executor {
 public:
  using FailureHandler = std::function<void(std::exception_ptr)>;

  // `clock`: the platform's clock. `on_failure` is called with the exception that a spawned task
  // threw.
  ThreadExecutor(const runtime::HostClock& clock, CompletionMode mode, runtime::Doorbell& doorbell,
                 FailureHandler on_failure);
  ~ThreadExecutor() override;

  Time now() const override { return clock_.now(); }
  Time begin() const override { return clock_.begin(); }
  void make_ready(std::coroutine_handle<> task) override { ready_.push_back(task); }
  // Made ready in the next turn: a task that yields in a loop must not keep the pollers from
  // running.
  void make_ready_again(std::coroutine_handle<> task) override { yielded_.push_back(task); }
  void make_ready_at(Time when, std::coroutine_handle<> task) override;

  // A poller must outlive the executor's loop or be removed. A task of the executor may remove it,
  // as may any code after the loop, but a poller may not.
  void add_poller(Poller& poller) { pollers_.push_back(&poller); }
  void remove_poller(Poller& poller) { std::erase(pollers_, &poller); }
  void set_mode(CompletionMode mode) { mode_ = mode; }
  runtime::Doorbell& doorbell() { return doorbell_; }
  const std::shared_ptr<Inbox>& inbox() const { return inbox_; }

  // Runs the loop until stop() is called, then destroys the remaining tasks.
  void run();
  // May be called by any thread.
  void stop();

 protected:
  void fail(std::exception_ptr error) override { on_failure_(std::move(error)); }

 private:
  friend class Condition;

  struct Timer {
    Time when;
    std::uint64_t order;  // timers of the same time fire in the order in which they were set
    std::coroutine_handle<> task;
    bool operator<(const Timer& other) const {
      return when != other.when ? when > other.when : order > other.order;
    }
  };

  // Acquire order: the caller of stop() may have waited for other threads, and everything that they
  // did must happen before tasks are destroyed here.
  bool stopping() const { return stop_.load(std::memory_order_acquire); }
  bool run_ready();
  bool fire_timers();
  bool poll();
  bool check_conditions();
  void empty_inbox();
  void idle();
  void sleep();
  void wait(std::uint32_t seen, Nanoseconds timeout);

  runtime::HostClock clock_;
  CompletionMode mode_;
  runtime::Doorbell& doorbell_;
  FailureHandler on_failure_;
  Ring<std::coroutine_handle<>> ready_;
  Ring<std::coroutine_handle<>> yielded_;
  std::vector<Timer> timers_;  // a heap
  std::uint64_t next_timer_ = 0;
  Time looked_{};  // when the clock was read for timers
  int turns_since_look_ = 0;
  std::vector<Poller*> pollers_;
  std::vector<int> descriptors_;  // those that end the thread's sleep
  std::vector<Condition*> conditions_;
  std::shared_ptr<Inbox> inbox_;
  std::vector<Task<>> arrived_;  // taken out of the inbox
  int idle_turns_ = 0;
  Spinning spinning_;  // for CompletionMode::event; a thread that polls does not sleep
  std::atomic<bool> stop_{false};
};

inline ThreadExecutor& current_thread_executor() {
  return static_cast<ThreadExecutor&>(Executor::current());
}

// co_await until(condition, deadline) suspends until condition() is true; the result is false if
// the deadline passed first. The condition is evaluated in every turn and must be cheap.
template <class Predicate>
class Until final : public Condition {
 public:
  Until(Predicate predicate, Time deadline)
      : Condition(deadline), predicate_(std::move(predicate)) {}
  bool await_ready() { return held_ = predicate_(); }
  void await_suspend(std::coroutine_handle<> task) { enlist(current_thread_executor(), task); }
  bool await_resume() const { return held_; }

 private:
  bool holds() const override { return predicate_(); }
  Predicate predicate_;
};
template <class Predicate>
Until<Predicate> until(Predicate predicate, Time deadline = Time::max()) {
  return Until<Predicate>(std::move(predicate), deadline);
}

}  // namespace perdura::host
