// Waits for a condition that other processes or threads establish.
#pragma once

#include <chrono>
#include <thread>

namespace perdura::test {

// Returns false if the condition does not become true within a generous time limit. Yields the
// processor between checks, since the others need it to make progress.
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
