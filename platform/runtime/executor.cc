#include "platform/runtime/executor.h"

namespace perdura {

Task<> Executor::supervise(Executor& executor, std::list<Task<>>::iterator self, Task<> task) {
  std::exception_ptr error;
  try {
    // Destroyed, with everything that its frame holds, as soon as the task has ended.
    Task<> running = std::move(task);
    co_await std::move(running);
  } catch (...) {
    error = std::current_exception();
  }
  executor.ended_.splice(executor.ended_.end(), executor.spawned_, self);
  if (error) executor.fail(error);
}

void Executor::spawn(Task<> task) {
  for (Task<>& one : ended_) one = Task<>();
  free_.splice(free_.end(), ended_);
  if (free_.empty()) free_.emplace_back();
  const auto self = free_.begin();
  spawned_.splice(spawned_.end(), free_, self);
  *self = supervise(*this, self, std::move(task));
  make_ready(self->handle());
}

}  // namespace perdura
