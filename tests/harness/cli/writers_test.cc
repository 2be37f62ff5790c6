// What is written where there is no room, and what ends a command that writes. A limit of the
// file size stands for the full disk: it needs no mount, and write() fails alike.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/harness/cli/program.h"
#include "tests/harness/temporary_folder.h"
#include "tests/support/wait_until.h"

namespace perdura {
namespace {

namespace fs = std::filesystem;

// Files of at most so many blocks of 512 bytes.
Outcome limited(int blocks, const std::string& arguments) {
  return shell(fmt::format("(ulimit -f {}; exec {})", blocks, perdura_command(arguments)));
}

// Whatever is there is whole.
void expect_whole_figures(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    EXPECT_FALSE(name.ends_with(".tmp")) << name;
    if (entry.path().extension() == ".svg") {
      EXPECT_TRUE(read(entry.path()).ends_with("</svg>\n\n")) << name;
    }
  }
}

// Blocks of 512 bytes that have room for the largest of the scripts, which are copied before
// anything is drawn.
int room_for_scripts() {
  std::uintmax_t largest = 0;
  for (const auto& script : fs::directory_iterator(PERDURA_SOURCE_DIR "/plots")) {
    largest = std::max(largest, script.file_size());
  }
  return static_cast<int>(largest / 512 + 1);
}

class Writers : public testing::Test {
 protected:
  void run(const std::string& name) const {
    const Outcome outcome = perdura(kOnePoint + "--quiet --out " + at(name));
    ASSERT_EQ(outcome.code, 0) << outcome.text;
  }
  std::string at(const std::string& name) const { return (temporary_.path() / name).string(); }
  static void expect_not_written(const Outcome& outcome, const std::string& file) {
    EXPECT_EQ(outcome.code, 1) << outcome.text;
    EXPECT_NE(outcome.text.find(file + ": cannot be written: "), std::string::npos) << outcome.text;
  }

  const test::TemporaryFolder temporary_;
};

// The folder is known before anything is read, so the user can name another one.
TEST_F(Writers, AReportBesideResultsThatMayNotBeChangedAsksForAnotherFolder) {
  fs::create_directory(at("results"));
  std::ofstream(at("results") + "/report") << "not a folder\n";
  const Outcome file = perdura("report " + at("results"));
  EXPECT_EQ(file.code, 2);
  EXPECT_EQ(file.text, fmt::format("perdura: report: {0}/report: is a file, not a folder; name "
                                   "another folder with --out\n",
                                   at("results")));
  fs::create_directory(at("others"));
  fs::permissions(at("others"), fs::perms(0555));
  fs::permissions(temporary_.path(), fs::perms(0755));
  const std::string as_user =
      geteuid() == 0 ? "setpriv --reuid 65534 --regid 65534 --clear-groups " : "";
  if (shell(as_user + perdura_command("list sites")).code != 0) GTEST_SKIP() << "no other user";
  const Outcome outcome = shell(as_user + perdura_command("report " + at("others")));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.text,
            fmt::format("perdura: report: {0}/report: {0}: cannot be written: Permission denied; "
                        "name another folder with --out\n",
                        at("others")));
}

TEST_F(Writers, CompareNamesTheFigureThatHasNoRoom) {
  run("a");
  const std::string compare = fmt::format("compare {0} {0} --out {1}", at("a"), at("figure"));
  const Outcome outcome = limited(room_for_scripts(), compare);
  EXPECT_EQ(outcome.code, 1) << outcome.text;
  EXPECT_NE(outcome.text.find(at("figure/comparison.")), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find(": cannot be written: File too large"), std::string::npos)
      << outcome.text;
  expect_whole_figures(at("figure"));
}

TEST_F(Writers, ReportNamesTheFileThatHasNoRoom) {
  run("a");
  const Outcome outcome = limited(room_for_scripts(), "report " + at("a"));
  EXPECT_EQ(outcome.code, 1) << outcome.text;
  EXPECT_NE(outcome.text.find(at("a/report/figures/")), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find(": cannot be written: File too large"), std::string::npos)
      << outcome.text;
  expect_whole_figures(at("a"));
}

TEST_F(Writers, ProbeNamesTheFigureThatHasNoRoom) {
  const std::string probe =
      "probe --platform sim --profile erda-connectx3 --set rdma --quick --quiet";
  const Outcome whole = perdura(fmt::format("{} --out {}", probe, at("whole")));
  ASSERT_EQ(whole.code, 0) << whole.text;
  std::uintmax_t largest = 512 * static_cast<std::uintmax_t>(
                                     room_for_scripts());  // of what is written before the figures
  for (const auto* file : {"manifest.json", "probes.csv", "profile.toml"}) {
    largest = std::max(largest, fs::file_size(fs::path(at("whole")) / file));
  }
  const Outcome outcome =
      limited(static_cast<int>(largest / 512 + 1), fmt::format("{} --out {}", probe, at("cut")));
  EXPECT_EQ(outcome.code, 1) << outcome.text;
  EXPECT_NE(outcome.text.find(": cannot be written: File too large"), std::string::npos)
      << outcome.text;
  expect_whole_figures(at("cut"));
}

TEST_F(Writers, PlanNamesTheHostfileThatHasNoRoom) {
  expect_not_written(limited(0, "plan erda-latency --site example --hostfile " + at("hosts")),
                     at("hosts"));
  EXPECT_FALSE(fs::exists(at("hosts")));
}

TEST(Output, ThatCannotBeWrittenIsNoSuccess) {
  for (const auto* arguments : {"list", "list systems", "list --json", "--help", "--version",
                                "plan erda-latency", "completion bash"}) {
    const Outcome outcome = shell(fmt::format("({} > /dev/full)", perdura_command(arguments)));
    EXPECT_EQ(outcome.code, 1) << arguments;
    EXPECT_EQ(outcome.text,
              "perdura: standard output: cannot be written: No space left on device\n")
        << arguments;
  }
}

// What serves until it is told to end is not left without a reader.
TEST(Output, OfShardsThatCannotBeWrittenEndsThem) {
  const std::string file = testing::TempDir() + "perdura-shards-" + std::to_string(::getpid());
  std::ofstream(file) << "job = \"writers-" << ::getpid() << "\"\n[shards.a]\nnode = 0\n";
  const Outcome outcome = shell("(" + perdura_command("mcas serve " + file) + " > /dev/full)");
  fs::remove(file);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.text, "perdura: standard output: cannot be written: No space left on device\n");
}

// A shard with standard output in a pipe.
class Shard {
 public:
  Shard(const std::string& file, const std::string& name) {
    EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0);
    const std::string command =
        "exec " + perdura_command("mcas serve " + file + " --shard " + name);
    process_ = fork();
    if (process_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(ends_[1], 1);
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
  }
  ~Shard() {
    end();
    for (const int descriptor : ends_) close(descriptor);
  }
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;
  std::string line() const {
    std::string text;
    for (char one = 0; ::read(ends_[0], &one, 1) == 1 && one != '\n';) text += one;
    return text;
  }
  void skip_to(const std::string& wanted) const {
    while (line() != wanted) {
    }
  }
  // Fills the pipe until there is no room for more, as if nobody read.
  std::size_t fill() const {
    const int end = open(fmt::format("/proc/self/fd/{}", ends_[1]).c_str(), O_WRONLY | O_NONBLOCK);
    std::size_t filled = 0;
    for (ssize_t length = 0; (length = write(end, "x", 1)) == 1;) ++filled;
    close(end);
    return filled;
  }
  void read_all(std::size_t length) const {
    for (char one = 0; length > 0 && ::read(ends_[0], &one, 1) == 1;) --length;
  }
  int end() {
    if (process_ == 0) return 0;
    kill(process_, SIGTERM);
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = 0;
    return status;
  }

 private:
  int ends_[2]{-1, -1};
  pid_t process_ = 0;
};

// The thread that would wait for a reader serves the shard.
TEST(Output, OfShardsThatNobodyReadsIsLeftOut) {
  const std::string file = testing::TempDir() + "perdura-shards-" + std::to_string(::getpid());
  std::ofstream(file) << "job = \"unread-" << ::getpid()
                      << "\"\n[shards.left]\nnode = 0\n[shards.right]\nnode = 1\n";
  {
    Shard left(file, "left");
    EXPECT_EQ(left.line(), "left serves");
    std::string said;
    // It hears of the other one at a time of its own.
    for (int round = 0; round < 20 && !said.starts_with("lines left out"); ++round) {
      const std::size_t filled = left.fill();
      {
        Shard right(file, "right");
        right.skip_to("right: left has joined");
        EXPECT_EQ(right.end(), 0);
      }
      left.read_all(filled);
      Shard right(file, "right");
      right.skip_to("right: left has joined");
      said = left.line();
      EXPECT_EQ(right.end(), 0);
      // Else it stands before events that came later.
      for (std::string next = said; next != "left: right has left"; next = left.line()) {
        if (next.starts_with("lines left out")) said = next;
      }
    }
    EXPECT_EQ(said.substr(0, 14), "lines left out");
    left.fill();
    EXPECT_EQ(left.end(), 0);
  }
  fs::remove(file);
}

TEST(Output, OfAMistakeThatCannotBeWrittenChangesNothing) {
  EXPECT_EQ(shell("(" + perdura_command("dance") + " 2> /dev/full)").code, 2);
}

// A gnuplot that takes for ever, and says who it is first.
TEST_F(Writers, OneSignalEndsAReportAndItsGnuplot) {
  run("a");
  const fs::path script = at("gnuplot");
  std::ofstream(script) << "#!/bin/sh\necho $$ > " << at("started") << ".part\nmv " << at("started")
                        << ".part " << at("started") << "\nexec tail -f /dev/null\n";
  fs::permissions(script, fs::perms::owner_all);
  Running report(perdura_command(fmt::format("report {} --gnuplot {}", at("a"), script.string())),
                 at("log"));
  ASSERT_TRUE(test::wait_until([&] { return fs::exists(at("started")); })) << read(at("log"));
  const std::string process = read(at("started"));
  report.signal(SIGTERM);
  EXPECT_TRUE(report.ends_within(std::chrono::minutes(1)));
  report.wait();
  // By itself, before its patience with what does not stop is over.
  EXPECT_EQ(read(at("log")).find("did not stop"), std::string::npos) << read(at("log"));
  const fs::path command_line =
      fmt::format("/proc/{}/cmdline", process.substr(0, process.find('\n')));
  EXPECT_TRUE(test::wait_until([&] { return read(command_line).empty(); }));
}

}  // namespace
}  // namespace perdura
