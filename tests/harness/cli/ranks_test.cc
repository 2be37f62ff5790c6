// What ranks do to each other: they may have different files, and they may die.
#include <sys/ptrace.h>

#include <cstdlib>
#include <fstream>
#include <optional>

#include "tests/harness/cli/program.h"
#include "tests/harness/temporary_folder.h"
#include "tests/support/wait_until.h"

namespace perdura {
namespace {

namespace fs = std::filesystem;

// The line that tells of a signal.
const std::string kInterrupted = "interrupted: stopping; ";

std::size_t lines_with(const std::string& text, const std::string& what) {
  std::istringstream input(text);
  std::size_t count = 0;
  for (std::string line; std::getline(input, line);) {
    if (line.find(what) != std::string::npos) ++count;
  }
  return count;
}

class DifferentRanks : public testing::Test {
 protected:
  // Rank 1 is started with another environment or other arguments.
  Outcome run(const std::string& environment, const std::string& more) const {
    return mpirun(1, fmt::format("{0} --out {1} : -n 1 env {2} {3} {0} --out {1} {4}", kOnePoint,
                                 out_.string(), environment, PERDURA_PROGRAM, more));
  }
  void expect_refused(const Outcome& outcome, const std::string& first,
                      const std::string& second) const {
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    EXPECT_EQ(lines_with(outcome.text, "perdura: "), 1U) << outcome.text;
    const auto found = outcome.text.find("perdura: rank 0 on host ");
    ASSERT_NE(found, std::string::npos) << outcome.text;
    const std::string line = outcome.text.substr(found);
    EXPECT_NE(line.find(first + ", rank 1 on host "), std::string::npos) << line;
    EXPECT_NE(line.find(" has " + second + "; give all ranks the same "), std::string::npos)
        << line;
    EXPECT_FALSE(fs::exists(out_));
  }
  static std::string source(const std::string& file) {
    return read(fs::path(PERDURA_SOURCE_DIR) / file);
  }
  // A copy of a file, with a line in front, where that rank looks first.
  std::string home_with(const std::string& file) const {
    const fs::path changed = temporary_.path() / "home" / file;
    fs::create_directories(changed.parent_path());
    std::ofstream(changed) << "# changed\n" << source(file);
    return "PERDURA_HOME=" + (temporary_.path() / "home").string();
  }
  static std::string first_line(const std::string& file) {
    const std::string text = source(file);
    return text.substr(0, text.find('\n'));
  }

  const test::TemporaryFolder temporary_;
  const fs::path out_ = temporary_.path() / "out";
};

TEST_F(DifferentRanks, OfOneConfigurationRun) {
  const Outcome outcome = run("PERDURA_HOME=/", "");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
}

TEST_F(DifferentRanks, AnotherSettingIsRefused) {
  expect_refused(run("", "--seed 17"), " of experiment 'seed = 1'", "'seed = 17'");
}

TEST_F(DifferentRanks, AnotherProfileIsRefused) {
  const std::string file = "profiles/erda-connectx3.toml";
  expect_refused(run(home_with(file), ""),
                 " has line 1 of profile erda-connectx3 '" + first_line(file) + "'", "'# changed'");
}

TEST_F(DifferentRanks, AnotherWorkloadIsRefused) {
  const std::string file = "workloads/workloada";
  expect_refused(run(home_with(file), ""),
                 " has line 1 of workload workloada '" + first_line(file) + "'", "'# changed'");
}

TEST_F(DifferentRanks, AProblemOfOneRankIsNamedWithItsHost) {
  const Outcome outcome = run("", "--set workload.speed=5");
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_EQ(lines_with(outcome.text, "perdura: "), 1U) << outcome.text;
  EXPECT_EQ(lines_with(outcome.text, ": --set workload.speed=5: unknown key 'speed'"), 1U)
      << outcome.text;
  EXPECT_EQ(lines_with(outcome.text, "perdura: rank 1 on host "), 1U) << outcome.text;
}

bool is_stopped(pid_t process) {
  const std::string status = read(fmt::format("/proc/{}/status", process));
  return status.find("State:\tT") != std::string::npos;
}

// A sweep without end on shared memory, of a server and a client, that has kept some points.
class DyingRanks : public testing::Test {
 protected:
  void SetUp() override {
    // mpirun is not to kill the others while they write their lines, however slow the machine is.
    setenv("OMPI_MCA_odls_base_sigkill_timeout", "5", 1);
    program_.emplace(mpirun_command(2, kShm + "--set repetitions=9999 --out " + out_.string()),
                     log_);
    ASSERT_TRUE(test::wait_until([this] { return lines_with(read(log_), ": mean ") >= 3; }))
        << read(log_);
    server_ = program_->rank(0);
    ASSERT_NE(server_, 0);
  }
  void TearDown() override { unsetenv("OMPI_MCA_odls_base_sigkill_timeout"); }
  void kill_rank(int rank) {
    const pid_t process = program_->rank(rank);
    ASSERT_NE(process, 0);
    ASSERT_EQ(kill(process, SIGKILL), 0);
    ASSERT_TRUE(program_->ranks_end_within(std::chrono::minutes(1))) << read(log_);
    EXPECT_NE(program_->wait(), 0);
  }
  // Of this run, or of the one that it was.
  std::size_t job_directories() const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator("/dev/shm")) {
      const std::string name = entry.path().filename().string();
      if (name.find(fmt::format("run-{}-", server_)) != std::string::npos) ++count;
    }
    return count;
  }

  const std::string kShm =
      "run erda-shm --set workload.operations=300 --set workload.warmup=0 "
      "--set 'matrix.workload=[\"workloada\"]' --set 'matrix.value_size=[64]' "
      "--set 'matrix.system=[\"erda\"]' ";
  const test::TemporaryFolder temporary_;
  const fs::path out_ = temporary_.path() / "out";
  const fs::path log_ = temporary_.path() / "log";
  std::optional<Running> program_;
  pid_t server_ = 0;
};

TEST_F(DyingRanks, AreNamedWithHostAndPointOnSharedMemory) {
  kill_rank(1);
  const std::string text = read(log_);
  EXPECT_EQ(lines_with(text, "perdura: rank 1 on host "), 1U) << text;
  EXPECT_EQ(lines_with(text, " has died, last while running point "), 1U) << text;
  EXPECT_EQ(lines_with(text, kInterrupted), 0U) << text;
  EXPECT_EQ(lines_with(text, "points are in " + out_.string() + "; perdura run --continue "), 1U)
      << text;
}

// Stops a process' first thread, and no other, while it waits for something: whoever does holds no
// lock that others need. False if this process may not trace.
bool stop_main_thread(pid_t process) {
  if (ptrace(PTRACE_SEIZE, process, nullptr, nullptr) != 0) return false;
  return test::wait_until([process] {
    ptrace(PTRACE_INTERRUPT, process, nullptr, nullptr);
    int status = 0;
    waitpid(process, &status, __WALL);
    long call = -1;
    std::ifstream(fmt::format("/proc/{}/syscall", process)) >> call;
    if (call == SYS_clock_nanosleep || call == SYS_futex) return true;
    ptrace(PTRACE_CONT, process, nullptr, nullptr);
    return false;
  });
}

// The thread that would write the results does not come to it, as on a machine that is busy with
// other things, so another one has to.
TEST_F(DyingRanks, WhatIsSaidToBeKeptIsInTheTables) {
  const pid_t client = program_->rank(1);
  ASSERT_NE(client, 0);
  // Not killed: mpirun, which would know, passes nothing on any more by the time that it is said.
  ASSERT_EQ(kill(client, SIGSTOP), 0);
  if (!stop_main_thread(server_)) GTEST_SKIP() << "a process may not trace its own here";
  // Nobody else hears of its end before the one who traces it.
  ASSERT_TRUE(test::wait_until([this] {
    int status = 0;
    return waitpid(server_, &status, __WALL | WNOHANG) == server_ && !WIFSTOPPED(status);
  })) << read(log_);
  ASSERT_TRUE(program_->ranks_end_within(std::chrono::minutes(1))) << read(log_);
  EXPECT_NE(program_->wait(), 0);
  const std::string text = read(log_);
  const std::string said = " of 9999 points are in " + out_.string() + "; perdura run --continue ";
  const std::size_t end = text.find(said);
  ASSERT_NE(end, std::string::npos) << text;
  const std::size_t begin = text.rfind(' ', end - 1) + 1;
  const auto kept = static_cast<std::size_t>(std::stoul(text.substr(begin, end - begin)));
  EXPECT_GE(kept, 3U);
  EXPECT_EQ(lines_with(read(out_ / "points.csv"), ",all,valid,"), kept);
  EXPECT_EQ(lines_with(read(out_ / "manifest.json"), "\"status\": \"interrupted\""), 1U);
}

TEST_F(DyingRanks, TheRootAmongThemIsNamedByAnother) {
  kill_rank(0);
  const std::string text = read(log_);
  EXPECT_EQ(lines_with(text, "perdura: rank 0 on host "), 1U) << text;
  EXPECT_EQ(lines_with(text, " has died; results are in " + out_.string() +
                                 "; perdura run --continue " + out_.string()),
            1U)
      << text;
  EXPECT_EQ(lines_with(text, kInterrupted), 0U) << text;
}

TEST(StoppedRanks, WithoutTheRootTheOthersSayWhereTheResultsAre) {
  const test::TemporaryFolder temporary;
  const std::string out = (temporary.path() / "out").string();
  const fs::path log = temporary.path() / "log";
  Running program(
      mpirun_command(2, kOnePoint + "--set repetitions=9999 --heartbeat 5 --out " + out), log);
  ASSERT_TRUE(test::wait_until([&log] { return lines_with(read(log), ": mean ") >= 3; }));
  const pid_t root = program.rank(0);
  ASSERT_NE(root, 0);
  ASSERT_EQ(kill(root, SIGSTOP), 0);
  const std::string line = fmt::format(
      " has not been heard of for 5 s; results are in {0}; perdura run --continue {0}\n", out);
  EXPECT_TRUE(test::wait_until([&] { return read(log).find(line) != std::string::npos; }))
      << read(log);
  kill(root, SIGCONT);
  EXPECT_TRUE(program.ranks_end_within(std::chrono::minutes(1))) << read(log);
}

// As if ^C reached every process of the terminal.
TEST_F(DyingRanks, OneLineTellsOfAnInterrupt) {
  const pid_t client = program_->rank(1);
  ASSERT_NE(client, 0);
  for (const pid_t process : {client, server_}) ASSERT_EQ(kill(process, SIGINT), 0);
  ASSERT_TRUE(program_->ranks_end_within(std::chrono::minutes(1))) << read(log_);
  EXPECT_NE(program_->wait(), 0);
  const std::string text = read(log_);
  EXPECT_EQ(lines_with(text, kInterrupted), 1U) << text;
  EXPECT_EQ(lines_with(text, "perdura: interrupted; "), 1U) << text;
}

TEST(Interrupts, ATerminalThatIsClosedIsOne) {
  const test::TemporaryFolder temporary;
  const fs::path out = temporary.path() / "out";
  const fs::path log = temporary.path() / "log";
  const std::string command =
      perdura_command(kOnePoint + "--set repetitions=9999 --out " + out.string());
  const auto begun = [&log] { return lines_with(read(log), ": mean ") > 0; };
  {
    Running program(command, log);
    ASSERT_TRUE(test::wait_until(begun));
    program.signal(SIGHUP);
    ASSERT_TRUE(program.ends_within(std::chrono::minutes(1)));
    EXPECT_EQ(program.wait(), 1);
    EXPECT_EQ(lines_with(read(log), kInterrupted), 1U) << read(log);
    EXPECT_NE(read(out / "manifest.json").find("\"status\": \"interrupted\""), std::string::npos);
  }
  Running program("nohup " + command + "2", log);
  ASSERT_TRUE(test::wait_until(begun));
  program.signal(SIGHUP);
  const std::size_t before = lines_with(read(log), ": mean ");
  EXPECT_TRUE(test::wait_until([&] { return lines_with(read(log), ": mean ") > before + 1; }));
}

TEST_F(DyingRanks, WhatNoneOfThemCouldCleanUpTheNextRunDoes) {
  // They are stopped first, so that none sees the other die.
  const pid_t client = program_->rank(1);
  ASSERT_NE(client, 0);
  ASSERT_TRUE(test::wait_until([&] {
    for (const pid_t process : {server_, client}) kill(process, SIGSTOP);
    while (!is_stopped(server_) || !is_stopped(client)) sched_yield();
    if (job_directories() > 0) return true;
    for (const pid_t process : {server_, client}) kill(process, SIGCONT);
    return false;
  }));
  program_->kill_ranks();
  const Outcome outcome =
      mpirun(2, kShm + "--set repetitions=1 --out " + (temporary_.path() / "next").string());
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(job_directories(), 0U);
}

}  // namespace
}  // namespace perdura
