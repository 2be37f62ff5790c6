// Synchronization for tasks and threads.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>

#include "platform/runtime/executor.h"
#include "platform/runtime/work.h"

namespace perdura {

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
    while (held_.exchange(true, std::memory_order_acquire)) {
      while (held_.load(std::memory_order_relaxed)) __builtin_ia32_pause();
    }
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
  std::atomic<bool> held_{false};
  Time held_until_{};
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

  // Makes the first waiting task ready; false if nobody waits.
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
