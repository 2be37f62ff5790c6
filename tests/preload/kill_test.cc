// kill -9 of the program (LMDB, Google's dense_hash_map, SQLite), of the mirror's process and of
// the backup's at random moments, and copies that hang: whatever was acknowledged is on a copy, or
// on the primary if it was alone, and the program finds no fault with it. PERDURA_MOJIM_KILLS says
// how often (8).
#include "tests/preload/running.h"

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
  static bool waits_for_one_mirror() {
    return GetParam() == "m-sync" || GetParam() == "m-syncflush" || GetParam() == "m-syncdisk";
  }
  // A program that goes on until it is killed.
  std::vector<std::string> writer(const SharedFolder& folder, std::uint64_t first,
                                  const std::string& how) {
    constexpr const char* kLast = "1000000";
    return mojim("run", GetParam(), folder,
                 {PERDURA_LMDB_WRITER, folder.file("a"), fmt::format("{}", first), kLast, how});
  }
  // The number of a line, if it is an acknowledgment; what else is said is kept.
  std::uint64_t number_of(const std::string& line, std::uint64_t otherwise) {
    const std::uint64_t number = std::strtoull(line.c_str(), nullptr, 10);
    if (number == 0) output_ += line + "\n";
    return number > 0 ? number : otherwise;
  }
  // Reads acknowledgments until the target, and a little further.
  std::uint64_t read_until(Running& running, std::uint64_t target) {
    std::uint64_t last = 0;
    while (last < target) {
      const auto line = running.line();
      if (!line) break;
      last = number_of(*line, last);
    }
    return last;
  }
  // Waits until the process has ended or been stopped, reads what was acknowledged until then, and
  // `number` further acknowledgments. One more may have been on its way, and counts as of before.
  std::uint64_t read_behind(Running& running, pid_t process, std::uint64_t last,
                            std::uint64_t number) {
    for (auto state = Running::state_of(process);
         state && state->letter != 'Z' && state->letter != 'T';
         state = Running::state_of(process)) {
      sched_yield();
    }
    for (auto bytes = static_cast<std::ptrdiff_t>(running.waiting()); bytes > 0;) {
      const auto line = running.line();
      if (!line) return last;
      bytes -= static_cast<std::ptrdiff_t>(line->size()) + 1;
      last = number_of(*line, last);
    }
    return read_until(running, last + 1 + number);
  }
  std::uint64_t read_rest(Running& running, std::uint64_t last) {
    while (const auto line = running.line()) last = number_of(*line, last);
    return last;
  }

  // Whose file has all that was acknowledged: the mirror's, unless the program has said that this
  // one did not answer, as a mirror may not on a busy machine.
  const char* holder(const SharedFolder& folder) const {
    const std::string lost = folder.file("b") + " does not answer; the program goes on without it";
    return output_.find(lost) == std::string::npos ? "b" : "a";
  }

  // Again and again, and looks into this node's file then.
  void end_and_then_the_program(const char* copy, int signal, const char* node) {
    SCOPED_TRACE(fmt::format("seed {}", seed_));
    const SharedFolder folder;
    std::uint64_t there = 0;
    // It takes two seconds to find that a copy is lost.
    for (int kill_number = 1; kill_number <= (kills() + 3) / 4; ++kill_number) {
      SCOPED_TRACE(fmt::format("kill {}", kill_number));
      output_.clear();
      Running running(writer(folder, there + 1, "map"));
      std::uint64_t acknowledged = read_until(running, there + 1 + random_() % 30);
      const pid_t process = running.child(copy);
      ASSERT_GT(process, 0);
      kill(process, signal);
      acknowledged = read_behind(running, process, acknowledged, 1 + random_() % 30);
      const pid_t program = running.child("lmdb_writer");
      ASSERT_GT(program, 0) << running.rest();
      kill(program, SIGKILL);
      acknowledged = read_rest(running, acknowledged);
      EXPECT_EQ(running.wait(), 1);
      // Who promotes the mirror has been told what it lacks.
      if (node == std::string_view("a")) {
        EXPECT_STREQ(holder(folder), "a") << output_;
      }
      const std::uint64_t found =
          last_transaction(folder.file(node == std::string_view("b") ? holder(folder) : node));
      EXPECT_GE(found, acknowledged) << output_;
      EXPECT_LE(found, acknowledged + 1) << output_;
      if (HasFailure()) return;
      there = found;
    }
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
    output_.clear();
    const std::string how = kill_number % 2 == 0 ? "map" : "write";
    Running running(writer(folder, there + 1, how));
    std::uint64_t acknowledged = read_until(running, there + 1 + random_() % 60);
    const pid_t program = running.child("lmdb_writer");
    ASSERT_GT(program, 0) << running.rest();
    kill(program, SIGKILL);
    acknowledged = read_rest(running, acknowledged);
    EXPECT_EQ(running.wait(), 1);
    const std::uint64_t found = last_transaction(folder.file(holder(folder)));
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
  if (!waits_for_one_mirror()) GTEST_SKIP() << "has several copies, or waits for none";
  end_and_then_the_program("mojim copy 1", SIGKILL, "a");
}

// Its connections are as before, and it answers nothing.
TEST_P(KilledMojim, TheMirrorHangsAndThenTheProgram) {
  if (!waits_for_one_mirror()) GTEST_SKIP() << "has several copies, or waits for none";
  end_and_then_the_program("mojim copy 1", SIGSTOP, "a");
}

// The mirror goes on without it. A backup that has come back is given what it lacks, by the next
// program or by the mirror.
TEST_P(KilledMojim, TheBackupAndThenTheProgram) {
  if (!GetParam().starts_with("m-syncsec") && !GetParam().starts_with("e-"))
    GTEST_SKIP() << "has no backup";
  end_and_then_the_program("mojim copy 2", SIGKILL, "b");
}

TEST_P(KilledMojim, TheBackupHangsAndThenTheProgram) {
  if (!GetParam().starts_with("m-syncsec") && !GetParam().starts_with("e-"))
    GTEST_SKIP() << "has no backup";
  end_and_then_the_program("mojim copy 2", SIGSTOP, "b");
}

// A table that nobody made for replication: each insertion is a sync point, and the table is synced
// as a whole before its head is when it has grown.
TEST_P(KilledMojim, TheHashTable) {
  SCOPED_TRACE(fmt::format("seed {}", seed_));
  for (int kill_number = 1; kill_number <= (kills() + 3) / 4; ++kill_number) {
    SCOPED_TRACE(fmt::format("kill {}", kill_number));
    output_.clear();
    const SharedFolder folder;
    Running running(
        mojim("run", GetParam(), folder, {PERDURA_HASH_INSERTS, folder.file("a"), "100000"}));
    std::uint64_t acknowledged = read_until(running, 100 + random_() % 1000);
    const pid_t program = running.child("hash_inserts");
    ASSERT_GT(program, 0) << running.rest();
    kill(program, SIGKILL);
    acknowledged = read_rest(running, acknowledged);
    EXPECT_EQ(running.wait(), 1);
    Running check({PERDURA_HASH_INSERTS, folder.file(holder(folder))});
    const std::string found = check.rest();
    EXPECT_EQ(check.wait(), 0) << found;
    if (GetParam() == "m-async") continue;
    EXPECT_GE(std::strtoull(found.c_str(), nullptr, 10), acknowledged) << output_;
  }
}

// SQLite's own shell. A commit is one fsync of the database, so with Mojim it needs no journal.
TEST_P(KilledMojim, Sqlite) {
  SCOPED_TRACE(fmt::format("seed {}", seed_));
  const auto sqlite = [](const std::string& file, const std::string& statements) {
    Running running({PERDURA_SQLITE, file, statements});
    const std::string output = running.rest();
    EXPECT_EQ(running.wait(), 0) << output;
    return output;
  };
  for (int kill_number = 1; kill_number <= (kills() + 3) / 4; ++kill_number) {
    SCOPED_TRACE(fmt::format("kill {}", kill_number));
    output_.clear();
    const SharedFolder folder;
    sqlite(folder.file("a"), "create table t(k integer primary key, v text)");
    fs::resize_file(folder.file("a"), 4 << 20);
    const std::string statements = folder.file("c") + ".sql";
    std::ofstream script(statements);
    script << "pragma mmap_size = 4194304;\npragma journal_mode = memory;\n";
    for (int key = 1; key <= 5000; ++key) {
      script << fmt::format("insert into t values({}, '{:0>500}'); select max(k) from t;\n", key,
                            key);
    }
    script.close();
    Running running(mojim("run", GetParam(), folder,
                          {PERDURA_SQLITE, folder.file("a"), ".read " + statements}));
    running.line();  // of the pragmas
    running.line();
    std::uint64_t acknowledged = read_until(running, 1 + random_() % 200);
    const pid_t program = running.child("sqlite3");
    ASSERT_GT(program, 0) << running.rest();
    kill(program, SIGKILL);
    acknowledged = read_rest(running, acknowledged);
    EXPECT_EQ(running.wait(), 1);
    const std::string file = folder.file(holder(folder));
    EXPECT_EQ(sqlite(file, "pragma integrity_check"), "ok\n");
    const std::string found = sqlite(file, "select count(*) from t");
    EXPECT_EQ(sqlite(file, "select coalesce(max(k), 0) from t"), found);
    if (GetParam() == "m-async") continue;
    EXPECT_GE(std::strtoull(found.c_str(), nullptr, 10), acknowledged) << output_;
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, KilledMojim,
                         testing::Values("m-sync", "m-syncflush", "m-async", "m-syncdisk",
                                         "m-syncsec", "m-syncseceth", "e-chain", "e-broadcast"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace perdura::test
