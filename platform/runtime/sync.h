// Synchronization for tasks and threads.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <coroutine>
#include <cstdint>

#include "platform/runtime/executor.h"
#include "platform/runtime/work.h"

namespace perdura {

// Waits between attempts to take a lock that another thread holds: it spins for about the length of
// a short critical section; after that, since the holder may not be running, it yields the core.
class SpinWait {
 public:
  void pause() {
    if (looks_ < kSpins) {
      ++looks_;
      __builtin_ia32_pause();
    } else {
      sched_yield();
    }
  }

 private:
  static constexpr int kSpins = 100;  // some microseconds
  int looks_ = 0;
};

// Mutual exclusion between the threads of a node, for critical sections that do not suspend.
// Waiting spins: it uses CPU time on real platforms, and as much virtual time on `sim`, where the
// lock only remembers until when it was held.
class SpinLock {
 public:
  void lock() {
    if (cost_meter != nullptr) [[unlikely]] {
      cost_meter->spin_until(held_until_);
      return;
    }
    if (held_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      wait();
  }
  // Does not wait; returns false if another thread holds the lock.
  bool try_lock() {
    if (cost_meter != nullptr) [[unlikely]]
      return cost_meter->now() >= held_until_;
    return !held_.exchange(true, std::memory_order_acquire);
  }
  void unlock() {
    if (cost_meter != nullptr) [[unlikely]] {
      held_until_ = cost_meter->now();
      return;
    }
    held_.store(false, std::memory_order_release);
  }

 private:
  void wait() {
    SpinWait wait;
    do {
      while (held_.load(std::memory_order_relaxed)) wait.pause();
    } while (held_.exchange(true, std::memory_order_acquire));
  }

  std::atomic<bool> held_{false};
  Time held_until_{};
};

// A lock for critical sections that may run at once if they only read. A thread that waits to write
// keeps new readers out, so it gets its turn; hence a thread must not read-lock a lock that it has
// read-locked already.
class SharedSpinLock {
 public:
  void lock() {
    if (cost_meter != nullptr) [[unlikely]] {
      cost_meter->spin_until(std::max(written_until_, read_until_));
      return;
    }
    SpinWait wait;
    while ((state_.fetch_or(kWriter, std::memory_order_acquire) & kWriter) != 0) wait.pause();
    while (state_.load(std::memory_order_acquire) != kWriter) wait.pause();
  }
  // Does not wait; returns false if another thread reads or writes.
  bool try_lock() {
    if (cost_meter != nullptr) [[unlikely]]
      return cost_meter->now() >= std::max(written_until_, read_until_);
    std::uint32_t free = 0;
    return state_.compare_exchange_strong(free, kWriter, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }
  void unlock() {
    if (cost_meter != nullptr) [[unlikely]] {
      written_until_ = cost_meter->now();
      return;
    }
    // Readers may be counting themselves in vain at this moment.
    state_.fetch_and(~kWriter, std::memory_order_release);
  }

  void lock_shared() {
    if (cost_meter != nullptr) [[unlikely]] {
      cost_meter->spin_until(written_until_);
      return;
    }
    SpinWait wait;
    while ((state_.fetch_add(1, std::memory_order_acquire) & kWriter) != 0) {
      state_.fetch_sub(1, std::memory_order_relaxed);
      while ((state_.load(std::memory_order_relaxed) & kWriter) != 0) wait.pause();
    }
  }
  void unlock_shared() {
    if (cost_meter != nullptr) [[unlikely]] {
      read_until_ = std::max(read_until_, cost_meter->now());
      return;
    }
    state_.fetch_sub(1, std::memory_order_release);
  }

 private:
  static constexpr std::uint32_t kWriter = std::uint32_t{1} << 31;  // the rest counts readers

  std::atomic<std::uint32_t> state_{0};
  Time written_until_{};
  Time read_until_{};
};

// A FIFO queue of coroutines of one executor that wait for something.
class WaitList {
 public:
  struct Node {
    std::coroutine_handle<> task;
    Executor* executor = nullptr;
    Node* next = nullptr;
    WaitList* list = nullptr;
    ~Node() {
      if (list != nullptr) list->remove(*this);
    }
  };

  bool empty() const { return head_ == nullptr; }

  void add(Node& node, std::coroutine_handle<> task) {
    node.task = task;
    node.executor = &Executor::current();
    node.list = this;
    node.next = nullptr;
    *tail_ = &node;
    tail_ = &node.next;
  }

  // Makes the first waiting task ready; returns false if none waits.
  bool wake_one() {
    Node* node = head_;
    if (node == nullptr) return false;
    remove(*node);
    node->executor->make_ready(node->task);
    return true;
  }

  void wake_all() {
    while (wake_one()) {
    }
  }

 private:
  void remove(Node& node) {
    Node** link = &head_;
    while (*link != &node) link = &(*link)->next;
    *link = node.next;
    if (tail_ == &node.next) tail_ = link;
    node.list = nullptr;
  }

  Node* head_ = nullptr;
  Node** tail_ = &head_;
};

// co_await wait(list) suspends the task until it is woken. The task must then check its condition
// again.
struct WaitAwaiter {
  WaitList& list;
  WaitList::Node node{};
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> task) { list.add(node, task); }
  void await_resume() const noexcept {}
};
inline WaitAwaiter wait(WaitList& list) { return {list}; }

// A counting semaphore for the tasks of one executor.
class Semaphore {
 public:
  explicit Semaphore(std::uint32_t free) : free_(free) {}

  Task<> acquire() {
    while (free_ == 0) co_await wait(waiting_);
    --free_;
  }
  void release() {
    ++free_;
    waiting_.wake_one();
  }

 private:
  std::uint32_t free_;
  WaitList waiting_;
};

}  // namespace perdura
