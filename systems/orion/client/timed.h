// Adds the time that an operation takes to a sum.
#pragma once

#include <utility>

#include "platform/base/units.h"
#include "platform/runtime/executor.h"
#include "platform/runtime/task.h"

namespace perdura::systems::orion {

template <class T>
Task<T> timed(Picoseconds& sum, Task<T> operation) {
  const Time begin = Executor::current().now();
  T result = co_await std::move(operation);
  sum += Executor::current().now() - begin;
  co_return result;
}

}  // namespace perdura::systems::orion
