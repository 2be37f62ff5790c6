// What a run of `perdura mojim` does with files that are not as the last one has left them: nothing
// is thrown away in silence, and nothing is made or changed when it refuses.
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "tests/preload/running.h"

namespace perdura::test {
namespace {

// All below a folder, to see that nothing has changed. Memory that a run shares with its readers,
// and its lock, are no contents.
std::map<std::string, std::string> all_below(const fs::path& folder) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().string();
    if (name.ends_with("/lock") || name.ends_with("/readers")) continue;
    std::string& contents = all[name];
    if (!entry.is_regular_file()) continue;
    contents.resize(entry.file_size());  // logs are large
    std::ifstream(entry.path())
        .read(contents.data(), static_cast<std::streamsize>(contents.size()));
  }
  return all;
}

class LastRun : public testing::Test {
 protected:
  std::vector<std::string> arguments(const std::vector<std::string>& options,
                                     const std::string& script, const char* primary = "a",
                                     const char* mirror = "b") const {
    std::vector<std::string> all{PERDURA_PROGRAM, "mojim", "run", "--mode", "m-sync"};
    if (std::find(options.begin(), options.end(), "--size") == options.end()) {
      all.insert(all.end(), {"--size", "64KiB"});
    }
    all.insert(all.end(), options.begin(), options.end());
    all.insert(all.end(), {"--primary", folder_->file(primary), "--mirror", folder_->file(mirror)});
    if (!script.empty()) all.insert(all.end(), {"--", "/bin/sh", "-c", script});
    return all;
  }
  Outcome run(const std::vector<std::string>& options, const std::string& script,
              const char* primary = "a", const char* mirror = "b") const {
    return test::run(arguments(options, script, primary, mirror));
  }
  // A command that writes these words there, and syncs them or not.
  std::string put(const std::string& words, int offset, bool synced, const char* node = "a") const {
    return fmt::format("printf {} | dd of={} bs=1 seek={} conv=notrunc{} status=none; ", words,
                       folder_->file(node), offset, synced ? ",fsync" : "");
  }
  // Without Mojim.
  void change(const char* node, const std::string& words, int offset) const {
    std::fstream file(folder_->file(node), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offset);
    file << words;
    ASSERT_TRUE(file.flush());
  }
  std::string contents(const char* node) const {
    std::ifstream in(folder_->file(node));
    return {(std::istreambuf_iterator<char>(in)), {}};
  }
  std::string words(const char* node, std::size_t offset, std::size_t length) const {
    return contents(node).substr(offset, length);
  }
  void begin() const {
    const Outcome first = run({}, put("first", 0, true));
    ASSERT_EQ(first.code, 0) << first.text;
    ASSERT_EQ(contents("a"), contents("b"));
    ASSERT_EQ(words("b", 0, 5), "first");
  }
  fs::path root() const { return fs::path(folder_->file("a")).parent_path().parent_path(); }
  // One line, exit code 2, and nothing is changed by it.
  void expect_refused(const std::vector<std::string>& arguments,
                      const std::vector<std::string>& words) const {
    const auto before = all_below(root());
    const Outcome outcome = test::run(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    EXPECT_EQ(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 1) << outcome.text;
    for (const std::string& word : words) {
      EXPECT_NE(outcome.text.find(word), std::string::npos) << word << " in " << outcome.text;
    }
    EXPECT_TRUE(all_below(root()) == before) << outcome.text;
  }

  std::optional<SharedFolder> folder_{std::in_place};
};

TEST_F(LastRun, WhatWasNotSyncedBeforeAnOrderlyEndIsThereInTheNextOne) {
  begin();
  const Outcome second = run({}, put("second", 0, true) + put("unsynced", 5000, false));
  EXPECT_EQ(second.code, 0) << second.text;
  EXPECT_EQ(contents("a"), contents("b"));
  EXPECT_EQ(words("b", 5000, 8), "unsynced");
  const Outcome third = run({}, put("third", 0, true));
  EXPECT_EQ(third.code, 0) << third.text;
  EXPECT_EQ(words("a", 5000, 8), "unsynced");
}

TEST_F(LastRun, AFileThatWasChangedWithoutMojimIsNotThrownAway) {
  for (const char* node : {"a", "b"}) {
    for (const std::string take : {"primary", "mirror"}) {
      SCOPED_TRACE(fmt::format("{} was changed, and the {}'s is taken", node, take));
      folder_.emplace();
      ASSERT_NO_FATAL_FAILURE(begin());
      change(node, "native", 8190);
      expect_refused(arguments({}, put("second", 0, true)),
                     {folder_->file(node) + " is not as the last run has left it", "6 bytes",
                      "pages: 2", "offset 8190", folder_->file(node) + " was written to last",
                      "--take primary or --take mirror"});
      const Outcome taken = run({"--take", take}, put("second", 0, true));
      EXPECT_EQ(taken.code, 0) << taken.text;
      const bool is_kept = (node == std::string_view("a")) == (take == "primary");
      EXPECT_EQ(words("a", 8190, 6), is_kept ? "native" : std::string(6, '\0'));
      EXPECT_EQ(words("a", 0, 6), "second");
      EXPECT_EQ(contents("a"), contents("b"));
      const Outcome third = run({}, put("third", 0, true));
      EXPECT_EQ(third.code, 0) << third.text;
    }
  }
}

// The change has the size of the one before and its time, as tools leave it.
TEST_F(LastRun, TimesOfFilesSayNothing) {
  begin();
  const auto time = fs::last_write_time(folder_->file("a"));
  change("a", "FIRST", 0);
  fs::last_write_time(folder_->file("a"), time);
  expect_refused(arguments({}, put("second", 0, true)), {"--take primary or --take mirror"});
  // And the other way round.
  change("a", "first", 0);
  const Outcome second = run({}, put("second", 0, true));
  EXPECT_EQ(second.code, 0) << second.text;
}

TEST_F(LastRun, AMirrorThatNoRunHasLeftIsNotOverwritten) {
  std::ofstream(folder_->file("a")) << "mine";
  std::ofstream(folder_->file("b")) << "others";
  expect_refused(arguments({}, put("first", 0, true)), {"no run has left"});
  const Outcome taken = run({"--take", "mirror"}, put("X", 0, true));
  EXPECT_EQ(taken.code, 0) << taken.text;
  EXPECT_EQ(words("a", 0, 6), "Xthers");
}

TEST_F(LastRun, APrimaryThatIsGoneIsNotMadeAnewInSilence) {
  begin();
  fs::remove(folder_->file("a"));
  fs::remove_all(folder_->file("a") + ".mojim");
  expect_refused(arguments({}, put("second", 0, true)), {"is empty, or does not exist"});
  const Outcome taken = run({"--take", "mirror"}, put("second", 8, true));
  EXPECT_EQ(taken.code, 0) << taken.text;
  EXPECT_EQ(words("a", 0, 5), "first");
}

// As after the loss of the mirror's disk. The primary must not load its file from the new one.
TEST_F(LastRun, ACopyThatIsGoneIsGivenWhatThePrimaryHolds) {
  const auto lose = [this](const char* node) {
    fs::remove(folder_->file(node));
    fs::remove_all(folder_->file(node) + ".mojim");
  };
  begin();
  lose("b");
  const Outcome next = run({}, put("next", 8, true));
  EXPECT_EQ(next.code, 0) << next.text;
  EXPECT_EQ(words("a", 0, 5), "first");
  EXPECT_EQ(contents("a"), contents("b"));
  // The program's file may have what was never synced, and the copy that told is gone.
  const Outcome killed = run({}, put("synced", 0, true) + "kill -9 $$");
  EXPECT_EQ(killed.code, 1) << killed.text;
  lose("b");
  expect_refused(arguments({}, put("last", 8, true)), {"--take primary"});
  const Outcome taken = run({"--take", "primary"}, put("last", 8, true));
  EXPECT_EQ(taken.code, 0) << taken.text;
  EXPECT_EQ(words("b", 0, 6), "synced");
  EXPECT_EQ(contents("a"), contents("b"));
}

// One of two copies is lost: the other one's place in the list must not matter.
TEST_F(LastRun, ACopyThatIsGoneIsGivenTheFileAlsoBesideAnother) {
  const auto with_backup = [this](const std::string& script) {
    std::vector<std::string> all = arguments({"--backup", folder_->file("c")}, script);
    all[4] = "e-broadcast";
    return all;
  };
  for (const char* lost : {"b", "c"}) {
    SCOPED_TRACE(lost);
    const Outcome first = test::run(with_backup(put(lost, 0, true)));
    ASSERT_EQ(first.code, 0) << first.text;
    fs::remove(folder_->file(lost));
    fs::remove_all(folder_->file(lost) + std::string(".mojim"));
    const Outcome next = test::run(with_backup(put("next", 8, true)));
    EXPECT_EQ(next.code, 0) << next.text;
    EXPECT_EQ(words("a", 0, 1), lost);
    EXPECT_EQ(contents("a"), contents("b"));
    EXPECT_EQ(contents("a"), contents("c"));
  }
}

TEST_F(LastRun, AfterTheProgramWasKilledTheMirrorIsTaken) {
  begin();
  const Outcome killed = run({}, put("synced", 0, true) + put("lost", 5000, false) + "kill -9 $$");
  EXPECT_EQ(killed.code, 1) << killed.text;
  const Outcome next = run({}, put("next", 8, true));
  EXPECT_EQ(next.code, 0) << next.text;
  EXPECT_EQ(words("a", 0, 6), "synced");
  EXPECT_EQ(contents("a"), contents("b"));
}

TEST_F(LastRun, AfterAFailureOnlyWhatTheRunHasLeftIsRolledBack) {
  begin();
  const Outcome killed = run({}, put("synced", 0, true) + "kill -9 $$");
  EXPECT_EQ(killed.code, 1) << killed.text;
  change("a", "native", 9000);
  expect_refused(arguments({}, put("second", 0, true)),
                 {folder_->file("a") + " is not as the last run has left it"});
}

// Something that a program waits for.
class Gate {
 public:
  explicit Gate(const fs::path& root) : path_((root / "gate").string()) {
    EXPECT_EQ(mkfifo(path_.c_str(), 0600), 0);
  }
  // A part of a script.
  std::string wait() const { return fmt::format("echo began; read line < {}; ", path_); }
  void open() const { std::ofstream(path_) << "go\n"; }

 private:
  std::string path_;
};

// Its program and the copies go on, and have the files until they end. What is left then is that of
// an orderly end.
TEST_F(LastRun, WhenTheRunWasKilledItsProgramKeepsTheFiles) {
  const auto pages = [&](const char* how) {
    return mojim("run", "m-sync", *folder_, {PERDURA_PAGES, how, folder_->file("a"), "3"});
  };
  Running killed(pages("end"));
  ASSERT_EQ(killed.line(), "1");
  ASSERT_EQ(killed.line(), "2");
  const pid_t program = killed.child("pages end");
  ASSERT_GT(program, 0);
  ASSERT_TRUE(Running::wait_until_stopped(program));
  kill(killed.id(), SIGKILL);
  expect_refused(pages("write"), {"programs of a run that was killed"});
  kill(program, SIGCONT);
  killed.rest();
  const Outcome next = test::run(pages("write"));
  EXPECT_EQ(next.code, 0) << next.text;
  EXPECT_EQ(contents("a"), contents("b"));
}

// The copies have seen no primary then, whose end they could notice.
TEST_F(LastRun, WhenTheRunWasKilledBeforeItsProgramUsedTheFileNothingKeepsIt) {
  // A file that no run has replicated yet: the primary of another one connects at once.
  std::ofstream(folder_->file("a")) << "before";
  const Gate gate(root());
  Running killed(arguments({}, gate.wait()));
  ASSERT_EQ(killed.line(), "began");
  kill(killed.id(), SIGKILL);
  gate.open();
  killed.rest();  // until all of its processes have ended
  const Outcome next = run({"--take", "primary"}, put("next", 0, true));
  EXPECT_EQ(next.code, 0) << next.text;
  EXPECT_EQ(words("b", 0, 4), "next");
}

TEST_F(LastRun, TwoAtOnceMayHaveNoFileInCommon) {
  const Gate gate(root());
  Running first(arguments({}, put("first", 0, true) + gate.wait()));
  ASSERT_EQ(first.line(), "began");
  const std::string words = "is in use by another run";
  expect_refused(arguments({}, put("second", 0, true)), {words});
  expect_refused(arguments({}, put("second", 0, true), "b", "a"), {words});
  expect_refused(arguments({}, put("second", 0, true), "a", "c"), {words});
  expect_refused(arguments({}, put("second", 0, true, "c"), "c", "a"), {words});
  fs::create_symlink(folder_->file("b"), folder_->file("c"));
  expect_refused(arguments({}, put("second", 0, true), "a", "c"), {words});
  gate.open();
  const std::string said = first.rest();
  EXPECT_EQ(first.wait(), 0) << said;
}

// Where the copies differ afterwards, the next one has to be told.
TEST_F(LastRun, WhenAllWereKilledNothingIsTakenInSilence) {
  begin();
  Running killed(arguments(
      {}, put("synced", 0, true) + put("unsynced", 5000, false) + "echo $$; exec sleep 1000"));
  const auto program = killed.line();
  ASSERT_TRUE(program);
  std::vector<pid_t> processes{killed.id(), killed.child("mojim copy"),
                               killed.child("mojim primary"), std::atoi(program->c_str())};
  for (const pid_t process : processes) {
    ASSERT_GT(process, 0);
    kill(process, SIGKILL);
  }
  killed.rest();
  killed.wait();
  const Outcome refused = run({}, put("next", 8, true));
  EXPECT_EQ(refused.code, 2) << refused.text;
  EXPECT_NE(refused.text.find("the last run was killed, or the power failed"), std::string::npos)
      << refused.text;
  EXPECT_EQ(words("b", 0, 6), "synced");
  EXPECT_EQ(words("a", 5000, 8), "unsynced");
  const Outcome taken = run({"--take", "primary"}, put("next", 8, true));
  EXPECT_EQ(taken.code, 0) << taken.text;
  EXPECT_EQ(words("b", 5000, 8), "unsynced");
}

TEST_F(LastRun, RolesAreNotSwappedInSilence) {
  begin();
  expect_refused(arguments({}, put("second", 0, true, "b"), "b", "a"),
                 {folder_->file("b") + " was a copy in the last run", "--take primary"});
  const Outcome taken = run({"--take", "primary"}, put("second", 0, true, "b"), "b", "a");
  EXPECT_EQ(taken.code, 0) << taken.text;
  EXPECT_EQ(words("a", 0, 6), "second");
  const Outcome again = run({}, put("third", 0, true, "b"), "b", "a");
  EXPECT_EQ(again.code, 0) << again.text;
}

// Whoever presses ^C ends the program; the copies get what it syncs until its end.
// The shell's child may get the signal before it is `sleep`, which may ignore it then; so it is
// killed.
TEST_F(LastRun, ASignalEndsTheProgramAndThenTheCopies) {
  begin();
  for (const bool to_all : {true, false}) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      SCOPED_TRACE(fmt::format("{} to {}", strsignal(signal), to_all ? "all" : "the run"));
      const std::string last = fmt::format("{}{}", to_all ? "all" : "run", signal);
      std::vector<std::string> all = arguments(
          {}, fmt::format("trap 'trap \"\" INT TERM HUP; kill -9 $!; {}exit 3' INT TERM HUP; "
                          "sleep 30 >/dev/null 2>&1 & echo began; wait",
                          put(last, 100, true)));
      all.insert(all.begin(), "/usr/bin/setsid");
      Running running(all);
      ASSERT_EQ(running.line(), "began");
      kill(to_all ? -running.id() : running.id(), signal);
      const std::string said = running.rest();
      EXPECT_EQ(running.wait(), 3) << said;
      EXPECT_EQ(words("b", 100, last.size()), last);
      EXPECT_NE(said.find("holds all sync points"), std::string::npos) << said;
    }
  }
}

TEST_F(LastRun, AProgramWithoutTheLibraryIsReplicatedAsOneWithIt) {
  const Outcome first = run({}, "exec env -u LD_PRELOAD sh -c '" + put("words", 0, true) + "'");
  EXPECT_EQ(first.code, 0) << first.text;
  EXPECT_EQ(words("b", 0, 5), "words");
  const Outcome second = run({}, put("begun", 100, true));
  EXPECT_EQ(second.code, 0) << second.text;
}

// --- sizes ---------------------------------------------------------------------------------------

TEST_F(LastRun, ASizeThatIsRefusedChangesNothing) {
  begin();
  expect_refused(arguments({"--size", "128KiB"}, put("second", 0, true)),
                 {"is replicated with --size 65536"});
  expect_refused(arguments({"--size", "32KiB"}, put("second", 0, true)), {"raise --size"});
  const Outcome second = run({}, put("second", 0, true));
  EXPECT_EQ(second.code, 0) << second.text;
  const Outcome grown = run({"--size", "128KiB", "--take", "primary"}, put("end", 131000, true));
  EXPECT_EQ(grown.code, 0) << grown.text;
  EXPECT_EQ(words("b", 0, 6), "second");
  EXPECT_EQ(words("b", 131000, 3), "end");
}

TEST_F(LastRun, MoreThanTheDiskHasIsRefusedBeforeAnythingIsMade) {
  std::ofstream(folder_->file("a")) << "mine";
  expect_refused(arguments({"--size", "32TiB"}, put("first", 0, true)), {"there is no room"});
}

TEST_F(LastRun, AProgramThatDoesNotExistIsRefusedBeforeAnythingIsMade) {
  std::vector<std::string> all = arguments({}, "");
  all.insert(all.end(), {"--", folder_->file("c")});
  expect_refused(all, {folder_->file("c") + ": No such file or directory"});
}

// --- recover -------------------------------------------------------------------------------------

TEST_F(LastRun, RecoverMakesNothing) {
  begin();
  const auto recover = [&](const std::string& primary, const std::string& mirror) {
    return std::vector<std::string>{PERDURA_PROGRAM, "mojim",    "recover", "--mode",
                                    "m-sync",        "--size",   "64KiB",   "--primary",
                                    primary,         "--mirror", mirror};
  };
  expect_refused(recover(folder_->file("a"), folder_->file("c")), {"there is no such file"});
  expect_refused(recover(folder_->file("c"), folder_->file("b")), {"there is no such file"});
  std::ofstream(folder_->file("c")) << "mine";
  expect_refused(recover(folder_->file("a"), folder_->file("c")), {"no run has replicated it"});
  const Outcome done = test::run(recover(folder_->file("a"), folder_->file("b")));
  EXPECT_EQ(done.code, 0) << done.text;
}

}  // namespace
}  // namespace perdura::test
