// The seed of a test that draws at random: another one in every run, unless PERDURA_TEST_SEED gives
// one. A test says it when it fails, so that the run can be repeated.
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
