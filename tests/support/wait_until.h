// Waits for what other processes or threads are to do.
#pragma once

#include <chrono>
#include <thread>

namespace perdura::test {

// False if it does not come true while the others are alive and well. They get the processor
// meanwhile: what is waited for takes longer than a look at whether it is there.
bool wait_until(const auto& condition) {
  constexpr std::chrono::microseconds kBetweenLooks(100);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return true;
}

}  // namespace perdura::test
