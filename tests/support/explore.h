// Explorations of failures in tests.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "platform/sim/failures.h"

namespace perdura::test {

// As sim::explore_failures(), but ends with the first run in which the test fails: the others would
// mostly say the same.
inline sim::Explored explore_until_failure(sim::ExploreOptions options,
                                           const std::function<void(sim::Failure&)>& scenario) {
  struct Failed {};
  options.progress = [](std::uint64_t, std::uint64_t) {
    if (testing::Test::HasFailure()) throw Failed{};
  };
  try {
    return sim::explore_failures(options, scenario);
  } catch (const Failed&) {
    return {};
  }
}

}  // namespace perdura::test
