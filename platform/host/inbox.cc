#include "platform/host/inbox.h"

namespace perdura::host {

void Inbox::push(Task<> task) {
  const std::lock_guard lock(mutex_);
  if (doorbell_ == nullptr) return;  // the task is destroyed, and its promise is broken
  line_.push_back(std::move(task));
  arrived_.exchange(true, std::memory_order_seq_cst);
  doorbell_->ring();
}

void Inbox::ring() {
  const std::lock_guard lock(mutex_);
  if (doorbell_ != nullptr) doorbell_->ring();
}

void Inbox::take(std::vector<Task<>>& tasks) {
  const std::lock_guard lock(mutex_);
  arrived_.store(false, std::memory_order_relaxed);
  tasks.swap(line_);
}

void Inbox::close() {
  // Destroyed after the lock is released, since their destructors may post.
  std::vector<Task<>> left;
  const std::lock_guard lock(mutex_);
  doorbell_ = nullptr;
  left.swap(line_);
}

}  // namespace perdura::host
