// Memory that cannot be had, wherever a command asks for it: it works all the same, or ends with one
// line that says so, exit code 1, and nothing left.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <cstring>
#include <regex>
#include <stdexcept>

#include "tests/harness/limits/commands.h"

namespace perdura {
namespace {

namespace fs = std::filesystem;
using test::CommandRow;
using test::Home;
using test::Start;

std::string told(const test::Ended& ended) {
  return fmt::format("exit code {}, signal {}:\n{}{}", ended.code, ended.signal,
                     ended.out.substr(0, 400), ended.errors);
}

// In each complaint, or in the results of the points that failed. Where gnuplot was refused memory,
// its own words follow the name of the figure.
void expect_memory_named(const test::Ended& ended, const std::string& when) {
  static const std::regex kNamed(
      "out of memory|annot allocate memory|ulimit -|no room|see verdict and reason in |"
      "figures? (are missing:|cannot be drawn,) .*gnuplot failed: ");
  for (const std::string& line : test::complaints(ended.errors)) {
    EXPECT_TRUE(std::regex_search(line, kNamed)) << when << " is not named: " << told(ended);
  }
}

class Memory : public testing::TestWithParam<CommandRow> {
 protected:
  void SetUp() override {
    usual_ = home_.attempt(GetParam(), {}).ended;
    ASSERT_GE(usual_.code, 0) << told(usual_);
  }

  void expect_well_ended(const Home::Attempt& attempt, const std::string& when) {
    const test::Ended& ended = attempt.ended;
    EXPECT_EQ(test::fault_of(GetParam(), attempt, usual_.code), "") << when << ": " << told(ended);
    const std::size_t usual_lines = test::complaints(usual_.errors).size();
    const bool is_usual =
        ended.code == usual_.code && test::complaints(ended.errors).size() <= usual_lines;
    if (!is_usual) expect_memory_named(ended, when);
  }

  Home home_;
  test::Ended usual_;
};

// The loader says in a line of its own that not even the libraries have room, and ends the process.
bool cannot_be_loaded(const test::Ended& ended) {
  return ended.code == 127 &&
         ended.errors.find("error while loading shared libraries") != std::string::npos;
}

class MemoryLimit : public Memory {};

TEST_P(MemoryLimit, OfAnySizeIsSaidInOneLineOrDoesNotMatter) {
  constexpr rlim_t kLeast = 16;
  constexpr rlim_t kMost = 512;
  constexpr rlim_t kStep = 8;
  constexpr rlim_t kUnit = rlim_t{1} << 20;
  constexpr std::array kLimits{std::pair(RLIMIT_DATA, "ulimit -d"),
                               std::pair(RLIMIT_AS, "ulimit -v")};
  for (const auto& [resource, name] : kLimits) {
    for (rlim_t mib = kLeast; mib <= kMost; mib += kStep) {
      const Home::Attempt attempt =
          home_.attempt(GetParam(), {.words = {}, .in_process = [which = resource, mib] {
                                       const rlimit limit{mib * kUnit, mib * kUnit};
                                       if (setrlimit(which, &limit) != 0) {
                                         throw std::runtime_error(std::strerror(errno));
                                       }
                                     }});
      if (cannot_be_loaded(attempt.ended)) continue;
      expect_well_ended(attempt, fmt::format("{} {} MiB", name, mib));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, MemoryLimit, testing::ValuesIn(test::command_rows()),
                         test::name_in_test);

class RefusedAllocation : public Memory {};

// The first, the second, the fourth, ... up to the last. Each of several processes is refused its
// own, and there is more that they could leave: fewer allocations are passed over then.
TEST_P(RefusedAllocation, EndsItWithOneLine) {
  const fs::path refused = home_.at("refused");
  const long part = GetParam().is_of_several ? 16 : 1;
  for (long which = 0;; which += which / part + 1) {
    fs::remove(refused);
    const Home::Attempt attempt = home_.attempt(
        GetParam(), {.words = {},
                     .environment = {fmt::format("LD_PRELOAD={}", PERDURA_FAILING_MEMORY),
                                     fmt::format("PERDURA_TEST_ALLOCATION={}", which),
                                     "PERDURA_TEST_ALLOCATION_REFUSED=" + refused.string()}});
    const std::string when = fmt::format("allocation {}", which);
    expect_well_ended(attempt, when);
    if (!fs::exists(refused)) return;
    // What was found without all memory is nothing that is known.
    if (test::complaints(attempt.ended.errors).empty()) {
      EXPECT_EQ(attempt.ended.code, usual_.code) << when << ": " << told(attempt.ended);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, RefusedAllocation, testing::ValuesIn(test::command_rows()),
                         test::name_in_test);

}  // namespace
}  // namespace perdura
