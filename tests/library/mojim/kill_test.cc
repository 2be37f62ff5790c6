// kill -9 of the program, of the mirror's process and of the backup's at random moments: whatever
// was acknowledged is on a copy, or on the primary if it was alone, and LMDB finds no fault with
// it. PERDURA_MOJIM_KILLS says how often (8).
#include "tests/library/mojim/running.h"

#include <cstdlib>
#include <random>

#include "tests/support/seed.h"

namespace perdura::test {
namespace {

int kills() {
  const char* const given = std::getenv("PERDURA_MOJIM_KILLS");
  return given == nullptr ? 8 : std::atoi(given);
}

class KilledMojim : public testing::TestWithParam<std::string> {
 protected:
  // A program that goes on until it is killed.
  std::vector<std::string> writer(const SharedFolder& folder, std::uint64_t first,
                                  const std::string& how) {
    constexpr const char* kLast = "1000000";
    return mojim("run", GetParam(), folder,
                 {PERDURA_LMDB_WRITER, folder.file("a"), fmt::format("{}", first), kLast, how});
  }
  // Reads acknowledgments until the target, and a little further.
  std::uint64_t read_until(Running& running, std::uint64_t target) {
    std::uint64_t last = 0;
    while (last < target) {
      const auto line = running.line();
      if (!line) break;
      if (const std::uint64_t number = std::strtoull(line->c_str(), nullptr, 10)) last = number;
    }
    return last;
  }
  std::uint64_t read_rest(Running& running, std::uint64_t last) {
    while (const auto line = running.line()) {
      output_ += *line + "\n";
      if (const std::uint64_t number = std::strtoull(line->c_str(), nullptr, 10)) last = number;
    }
    return last;
  }

  unsigned seed_ = random_seed();
  std::mt19937 random_{seed_};
  std::string output_;
};

// The next program goes on where the one before has left off, in the same files.
TEST_P(KilledMojim, ThePrograms) {
  SCOPED_TRACE(fmt::format("seed {}", seed_));
  const SharedFolder folder;
  std::uint64_t there = 0;
  for (int kill_number = 1; kill_number <= kills(); ++kill_number) {
    SCOPED_TRACE(fmt::format("kill {}", kill_number));
    const std::string how = kill_number % 2 == 0 ? "map" : "write";
    Running running(writer(folder, there + 1, how));
    std::uint64_t acknowledged = read_until(running, there + 1 + random_() % 60);
    const pid_t program = running.child("lmdb_writer");
    ASSERT_GT(program, 0) << running.rest();
    kill(program, SIGKILL);
    acknowledged = read_rest(running, acknowledged);
    EXPECT_EQ(running.wait(), 1);
    const std::uint64_t found = last_transaction(folder.file("b"));
    if (GetParam() == "m-async") {
      EXPECT_LE(found, acknowledged + 1);
    } else {
      EXPECT_GE(found, acknowledged) << output_;
      EXPECT_LE(found, acknowledged + 1) << output_;
    }
    if (HasFailure()) return;
    there = found;
  }
}

// The program goes on alone; then it is killed, too. What it had acknowledged is in its own file,
// and the next one gives that to a mirror that has come back.
TEST_P(KilledMojim, TheMirrorAndThenTheProgram) {
  if (GetParam() != "m-sync" && GetParam() != "m-syncflush") GTEST_SKIP() << "has several copies";
  SCOPED_TRACE(fmt::format("seed {}", seed_));
  const SharedFolder folder;
  std::uint64_t there = 0;
  // It takes the program two seconds to find that the mirror is lost.
  for (int kill_number = 1; kill_number <= (kills() + 3) / 4; ++kill_number) {
    SCOPED_TRACE(fmt::format("kill {}", kill_number));
    Running running(writer(folder, there + 1, "map"));
    std::uint64_t acknowledged = read_until(running, there + 1 + random_() % 30);
    const pid_t mirror = running.child("mojim copy 1");
    ASSERT_GT(mirror, 0);
    kill(mirror, SIGKILL);
    acknowledged = read_until(running, acknowledged + 1 + random_() % 30);
    const pid_t program = running.child("lmdb_writer");
    ASSERT_GT(program, 0) << running.rest();
    kill(program, SIGKILL);
    acknowledged = read_rest(running, acknowledged);
    EXPECT_EQ(running.wait(), 1);
    const std::uint64_t found = last_transaction(folder.file("a"));
    EXPECT_GE(found, acknowledged) << output_;
    EXPECT_LE(found, acknowledged + 1) << output_;
    if (HasFailure()) return;
    there = found;
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, KilledMojim,
                         testing::Values("m-sync", "m-syncflush", "m-async", "m-syncsec", "e-chain",
                                         "e-broadcast"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace perdura::test
