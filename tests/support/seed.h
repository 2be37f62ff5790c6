// The seed of a randomized test: different in every run unless PERDURA_TEST_SEED gives one. A
// failing test prints it, so that the run can be repeated.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

namespace perdura::test {

inline std::uint32_t random_seed() {
  const char* const given = std::getenv("PERDURA_TEST_SEED");
  if (given == nullptr) return std::random_device()();
  return static_cast<std::uint32_t>(std::strtoull(given, nullptr, 10));
}

}  // namespace perdura::test
