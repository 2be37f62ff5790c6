// Waits for what other processes or threads are to do.
#pragma once

#include <sched.h>

#include <chrono>

namespace perdura::test {

// False if it does not come true while the others are alive and well.
bool wait_until(const auto& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    sched_yield();
  }
  return true;
}

}  // namespace perdura::test
