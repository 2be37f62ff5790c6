// Programs that know nothing of Mojim, or only its C header, on files that it replicates: copies
// hold what was synced, and wrong use gets one clear line.
#include "tests/preload/running.h"

namespace perdura::test {
namespace {

class ProgramOn : public testing::TestWithParam<std::string> {};

TEST_P(ProgramOn, LmdbIsOnEachCopy) {
  for (const std::string how : {"", "map"}) {
    SCOPED_TRACE(how);
    const SharedFolder folder;
    std::vector<std::string> writer{PERDURA_LMDB_WRITER, folder.file("a"), "1", "40"};
    if (!how.empty()) writer.push_back(how);
    Running running(mojim("run", GetParam(), folder, writer));
    const std::string output = running.rest();
    EXPECT_EQ(running.wait(), 0) << output;
    EXPECT_EQ(last_transaction(folder.file("a")), 40U);
    if (GetParam() == "s-unreplicated") continue;
    EXPECT_EQ(last_transaction(folder.file("b")), 40U) << output;
    // A backup of M-syncsec gets it in the background, and may not have got the region yet.
    const std::string backup = folder.file("c");
    const bool holds_it = output.find(backup + " holds") != std::string::npos;
    if (!fs::exists(backup) || (GetParam().starts_with("m-syncsec") && !holds_it)) continue;
    const std::uint64_t last = last_transaction(backup);
    if (!GetParam().starts_with("m-syncsec")) {
      EXPECT_EQ(last, 40U) << output;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, ProgramOn,
                         testing::Values("s-unreplicated", "m-sync", "m-syncflush", "m-async",
                                         "m-syncdisk", "m-syncsec", "m-syncseceth", "e-chain",
                                         "e-broadcast"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Figure 3.1: each run maps the file again, and finds what the runs before have left. The entries
// are so long that most of them are in other pages than the size.
TEST(Program, AppendsToALogBySyncsOfTwoRanges) {
  const SharedFolder folder;
  std::string bytes;
  for (std::uint64_t run = 1; run <= 3; ++run) {
    const std::string entry = fmt::format("{:0>4999}", run);
    Running running(mojim("run", "m-sync", folder, {PERDURA_APPEND_LOG, folder.file("a"), entry}));
    EXPECT_EQ(running.line(), fmt::format("{} accesses, {} bytes", run, run * 5000));
    running.rest();
    EXPECT_EQ(running.wait(), 0);
    bytes += entry + '\0';
    for (const char* node : {"a", "b"}) {
      std::ifstream file(folder.file(node));
      std::uint64_t head[2] = {};
      file.read(reinterpret_cast<char*>(head), sizeof head);
      EXPECT_EQ(head[0], run) << node;
      EXPECT_EQ(head[1], bytes.size()) << node;
      std::string found(bytes.size(), '\0');
      file.read(found.data(), static_cast<std::streamsize>(found.size()));
      EXPECT_EQ(found, bytes) << node;
    }
  }
}

// Nobody waits for a backup of M-syncsec, so the program goes on when its process is killed.
TEST(Program, ABackupThatWasKilledTakesNothingFromTheOthers) {
  const SharedFolder folder;
  Running running(mojim("run", "m-syncsec", folder,
                        {PERDURA_LMDB_WRITER, folder.file("a"), "1", "400", "map"}));
  EXPECT_EQ(running.line(), "1");
  const pid_t backup = running.child("mojim copy 2");
  ASSERT_GT(backup, 0);
  kill(backup, SIGKILL);
  const std::string output = running.rest();
  EXPECT_EQ(running.wait(), 0) << output;
  EXPECT_NE(output.find(folder.file("c") + " may lack the last sync points"), std::string::npos)
      << output;
  EXPECT_EQ(last_transaction(folder.file("b")), 400U) << output;
  // Named as the primary it is given all by the mirror before anything else.
  Running again({PERDURA_PROGRAM,
                 "mojim",
                 "run",
                 "--mode",
                 "m-syncsec",
                 "--size",
                 "4MiB",
                 "--take",
                 "mirror",
                 "--primary",
                 folder.file("c"),
                 "--mirror",
                 folder.file("b"),
                 "--backup",
                 folder.file("a"),
                 "--",
                 PERDURA_LMDB_WRITER,
                 folder.file("c"),
                 "401",
                 "410"});
  const std::string said = again.rest();
  EXPECT_EQ(again.wait(), 0) << said;
  EXPECT_EQ(last_transaction(folder.file("c")), 410U) << said;
  EXPECT_EQ(last_transaction(folder.file("b")), 410U) << said;
}

// The mirror's file becomes the program's, as after the loss of the primary's node.
TEST(Program, GoesOnOnTheMirrorsCopy) {
  const SharedFolder folder;
  {
    Running running(
        mojim("run", "m-sync", folder, {PERDURA_LMDB_WRITER, folder.file("a"), "1", "30", "map"}));
    running.rest();
    EXPECT_EQ(running.wait(), 0);
  }
  const std::vector<std::string> other{PERDURA_PROGRAM,
                                       "mojim",
                                       "run",
                                       "--mode",
                                       "m-sync",
                                       "--size",
                                       "4MiB",
                                       "--take",
                                       "primary",
                                       "--primary",
                                       folder.file("b"),
                                       "--mirror",
                                       folder.file("a"),
                                       "--",
                                       PERDURA_LMDB_WRITER,
                                       folder.file("b"),
                                       "31",
                                       "60",
                                       "map"};
  Running running(other);
  const std::string output = running.rest();
  EXPECT_EQ(running.wait(), 0) << output;
  EXPECT_EQ(last_transaction(folder.file("b")), 60U);
  EXPECT_EQ(last_transaction(folder.file("a")), 60U) << output;
}

// The mirror of M-syncdisk: its file is on a disk and its log elsewhere, where the file's folder
// leads to when it becomes the program's.
TEST(Program, GoesOnOnACopyOnADiskWhoseLogIsElsewhere) {
  const SharedFolder folder;
  const std::string log = folder.file("log");
  const auto run = [&](const char* primary, const char* mirror, const char* first, const char* last,
                       const std::vector<std::string>& more) {
    std::vector<std::string> all{PERDURA_PROGRAM,
                                 "mojim",
                                 "run",
                                 "--mode",
                                 "m-syncdisk",
                                 "--size",
                                 "4MiB",
                                 "--primary",
                                 folder.file(primary),
                                 "--mirror",
                                 folder.file(mirror)};
    all.insert(all.end(), more.begin(), more.end());
    all.insert(all.end(), {"--", PERDURA_LMDB_WRITER, folder.file(primary), first, last, "map"});
    Running running(all);
    const std::string output = running.rest();
    EXPECT_EQ(running.wait(), 0) << output;
    return output;
  };
  run("a", "b", "1", "30", {"--log", log});
  EXPECT_TRUE(fs::exists(fs::path(log) / "data.logs"));
  EXPECT_FALSE(fs::exists(folder.file("b") + ".mojim/data.logs"));
  EXPECT_EQ(last_transaction(folder.file("b")), 30U);
  run("a", "b", "31", "40", {});  // the folder says where the log is
  EXPECT_EQ(last_transaction(folder.file("b")), 40U);
  const std::string output = run("b", "a", "41", "60", {"--take", "primary"});
  EXPECT_EQ(last_transaction(folder.file("b")), 60U) << output;
  EXPECT_EQ(last_transaction(folder.file("a")), 60U) << output;
  run("a", "b", "61", "70", {"--take", "primary"});
  EXPECT_EQ(last_transaction(folder.file("b")), 70U) << output;
}

// --- wrong use -----------------------------------------------------------------------------------

void expect_refusal(const Outcome& outcome, const std::string& words) {
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_NE(outcome.text.find(words), std::string::npos) << outcome.text;
  EXPECT_EQ(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 1) << outcome.text;
}

TEST(Program, WrongUseGetsOneLine) {
  const SharedFolder folder;
  const std::string a = folder.file("a");
  const auto with = [&](const std::vector<std::string>& options) {
    std::vector<std::string> arguments{PERDURA_PROGRAM, "mojim", "run"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"--", PERDURA_LMDB_WRITER, a, "1", "3"});
    return run(arguments);
  };
  expect_refusal(with({"--mode", "m-sync", "--size", "4MiB", "--primary", a}),
                 "m-sync needs a mirror; add --mirror FILE");
  expect_refusal(
      with({"--mode", "m-syncsec", "--size", "4MiB", "--primary", a, "--mirror", folder.file("b")}),
      "m-syncsec needs a backup; add --backup FILE");
  expect_refusal(with({"--mode", "m-sync", "--size", "4MiB", "--primary", a, "--mirror",
                       folder.file("b"), "--backup", folder.file("c")}),
                 "m-sync has no backups; leave --backup out");
  expect_refusal(with({"--mode", "m-sync", "--size", "4MiB", "--primary", a, "--mirror", a}),
                 "given twice; each node has a file of its own");
  expect_refusal(with({"--mode", "sync", "--size", "4MiB", "--primary", a}),
                 "unknown system 'sync'");
  expect_refusal(with({"--mode", "m-sync", "--size", "4MiB", "--primary", "/nowhere/x", "--mirror",
                       folder.file("b")}),
                 "/nowhere: there is no such folder");
}

// Where processes of a run find each other in shared memory.
bool has_left_anything(pid_t run) {
  const std::string end = fmt::format("mojim-{}", run);
  for (const auto& entry : fs::directory_iterator("/dev/shm")) {
    if (entry.path().filename().string().ends_with(end)) return true;
  }
  return false;
}

TEST(Program, WhatAKilledOneLeavesIsRemovedByTheNextOne) {
  const SharedFolder folder;
  const std::vector<std::string> endless{PERDURA_LMDB_WRITER, folder.file("a"), "1", "100000000"};
  Running killed(mojim("run", "m-sync", folder, endless));
  const pid_t run = killed.id();
  EXPECT_TRUE(killed.line());
  for (const pid_t process : {killed.child("mojim copy"), killed.child("lmdb_writer"), run}) {
    ASSERT_GT(process, 0);
    kill(process, SIGKILL);
  }
  killed.rest();
  killed.wait();
  ASSERT_TRUE(has_left_anything(run)) << "there is nothing to remove";
  std::vector<std::string> with_mirror =
      mojim("run", "m-sync", folder, {PERDURA_LMDB_WRITER, folder.file("a"), "1", "2"});
  with_mirror.insert(with_mirror.begin() + 3, {"--take", "mirror"});
  Running next(with_mirror);
  next.rest();
  EXPECT_EQ(next.wait(), 0);
  EXPECT_FALSE(has_left_anything(run));
}

TEST(Program, SaysWhenNothingIsReplicated) {
  const SharedFolder folder;
  const Outcome outcome = run(mojim("run", "m-sync", folder, {"/bin/true"}));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.text.find("nothing was replicated: the program has not mapped"),
            std::string::npos)
      << outcome.text;
}

TEST(Program, SaysWhenItMapsMoreThanTheRegion) {
  const SharedFolder folder;
  std::vector<std::string> arguments =
      mojim("run", "m-sync", folder, {PERDURA_LMDB_WRITER, folder.file("a"), "1", "3", "map"});
  std::replace(arguments.begin(), arguments.end(), std::string("4MiB"), std::string("1MiB"));
  const Outcome outcome = run(arguments);
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.text.find("raise --size"), std::string::npos) << outcome.text;
}

}  // namespace
}  // namespace perdura::test
