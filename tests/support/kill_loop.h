// Support for tests that repeatedly kill one process of a cluster.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <string>

#include "tests/support/processes.h"
#include "tests/support/seed.h"

namespace perdura::test {

// The parameter of a suite of methods or systems as part of a test's name.
template <class Name>
std::string plain_name(const testing::TestParamInfo<Name>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// The random number of steps that a process makes before it is killed, at an arbitrary instruction.
struct StepsBeforeKill {
  std::uint64_t least;
  std::uint64_t below;
};

// A suite over methods or systems; a failure says the seed.
template <class Name>
class KillTest : public testing::TestWithParam<Name> {
 protected:
  // Starts a process and kills it, `times` times. `progress` is given the number of the round, from
  // 1, and waits until so many more steps are made; false if they are not.
  void kill_again_and_again(
      Processes& processes, std::uint64_t times, StepsBeforeKill steps,
      const std::function<pid_t()>& start,
      const std::function<bool(std::uint64_t round, std::uint64_t more)>& progress) {
    for (std::uint64_t round = 1; round <= times; ++round) {
      const pid_t process = start();
      const std::uint64_t more = steps.least + random_() % (steps.below - steps.least);
      ASSERT_TRUE(progress(round, more)) << "before kill " << round;
      processes.kill_process(process);
    }
  }

 private:
  const unsigned seed_ = random_seed();
  const testing::ScopedTrace trace_{__FILE__, __LINE__, "seed " + std::to_string(seed_)};
  std::mt19937 random_{seed_};
};

}  // namespace perdura::test
