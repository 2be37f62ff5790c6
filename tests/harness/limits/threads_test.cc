// The first, the second, ... start of a thread is refused, as by a limit of processes: a command
// works all the same, or ends with one line that names the limit; nothing crashes, hangs, or is
// left.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/harness/limits/commands.h"

namespace perdura {
namespace {

namespace fs = std::filesystem;
using test::CommandRow;
using test::Home;

class RefusedThreads : public testing::TestWithParam<CommandRow> {};

// Returns how many threads the command starts.
int refuse_each(Home& home, const CommandRow& row) {
  constexpr int kMost = 300;
  const fs::path refused = home.at("refused");
  for (int most = 0; most < kMost; ++most) {
    fs::remove(refused);
    const Home::Attempt attempt =
        home.attempt(row, {.words = {},
                           .environment = {fmt::format("LD_PRELOAD={}", PERDURA_FAILING_THREADS),
                                           fmt::format("PERDURA_TEST_THREADS={}", most),
                                           "PERDURA_TEST_THREADS_REFUSED=" + refused.string()}});
    const test::Ended& ended = attempt.ended;
    const std::string told = fmt::format("after {} threads, exit code {}, signal {}:\n{}{}", most,
                                         ended.code, ended.signal, ended.out, ended.errors);
    EXPECT_EQ(test::fault_of(row, attempt, ended.code == 1 ? -1 : 0), "") << told;
    if (!fs::exists(refused)) {
      EXPECT_EQ(ended.code, 0) << told;
      return most;
    }
    if (ended.code != 0) {
      EXPECT_NE(ended.errors.find("cannot start another thread"), std::string::npos) << told;
      EXPECT_NE(ended.errors.find("ulimit -u"), std::string::npos) << told;
    }
    if (testing::Test::HasFailure()) return most;
  }
  ADD_FAILURE() << "more than " << kMost << " threads";
  return kMost;
}

TEST_P(RefusedThreads, EndItWithOneLine) {
  if (GetParam().name == "fs mount" && (geteuid() != 0 || access("/dev/fuse", R_OK | W_OK) != 0)) {
    GTEST_SKIP() << "mounting needs root and /dev/fuse";
  }
  Home home;
  EXPECT_GT(refuse_each(home, GetParam()), 0) << "it starts none";
}

// Those that leave something running, mounted or half made if they do not end well.
std::vector<CommandRow> rows() {
  std::vector<CommandRow> chosen;
  for (const CommandRow& row : test::command_rows()) {
    if (row.makes == "out/manifest.json" || row.ending != test::Ending::by_itself) {
      chosen.push_back(row);
    }
  }
  return chosen;
}

INSTANTIATE_TEST_SUITE_P(Of, RefusedThreads, testing::ValuesIn(rows()), test::name_in_test);

}  // namespace
}  // namespace perdura
