// perdura soak, and perdura crash --replay of what it has found.
#include <algorithm>
#include <fstream>

#include "platform/base/json.h"
#include "tests/harness/cli/program.h"
#include "tests/harness/temporary_folder.h"

namespace perdura {
namespace {

namespace fs = std::filesystem;

// Findings; beside each is its diagram.
std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(SoakCommand, SaysWhatItTriedAndWhatNeverHappened) {
  const test::TemporaryFolder temporary;
  const Outcome outcome = perdura("soak remote-log --runs 3 -o " + temporary.path().string());
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  for (const std::string part :
       {"remote-log, write_with_immediate on dmp ddio iwarp, ", ": refused: needs WRITE_WITH_IMM",
        "schedules", "drawn anew", "crash states", "findings", "what happened", " laps of the log",
        "\n0 settings kept less than expected\n"}) {
    EXPECT_NE(outcome.text.find(part), std::string::npos) << part << " in\n" << outcome.text;
  }
  EXPECT_TRUE(files_in(temporary.path()).empty());
}

// What nobody promises of Erda is found soon.
TEST(SoakCommand, WhatItFindsIsReplayedFromItsFile) {
  const test::TemporaryFolder temporary;
  const Outcome outcome =
      perdura("soak erda --expect durable --runs 100 -o " + temporary.path().string());
  EXPECT_EQ(outcome.code, 1) << outcome.text;
  const auto files = files_in(temporary.path());
  ASSERT_FALSE(files.empty()) << outcome.text;
  EXPECT_LE(files.size(), 3U) << "one of each setting\n" << outcome.text;
  for (const std::string& file : files) {
    const Outcome replayed = perdura("crash --replay " + file);
    EXPECT_EQ(replayed.code, 1) << replayed.text;
    // Behind an empty line comes the explanation.
    const std::string found = replayed.text.substr(0, replayed.text.find("\n\n"));
    EXPECT_NE(outcome.text.find(found), std::string::npos) << replayed.text;
  }
}

TEST(SoakCommand, RanksShareTheSeeds) {
  const test::TemporaryFolder temporary;
  const std::string soak = "soak remote-log --runs 2 -o " + temporary.path().string();
  const Outcome alone = perdura(soak);
  const Outcome together = shell(mpirun_command(2, soak));
  EXPECT_EQ(together.code, 0) << together.text;
  const auto schedules = [](const std::string& text) {
    const std::size_t all = text.find("\nall ");
    return all == std::string::npos ? 0 : std::stoul(text.substr(all + 5));
  };
  EXPECT_GT(schedules(alone.text), 0U) << alone.text;
  EXPECT_EQ(schedules(together.text), 2 * schedules(alone.text)) << together.text;
}

// No two ranks run the same schedules.
TEST(SoakCommand, RanksHaveSeedsOfTheirOwn) {
  const test::TemporaryFolder temporary;
  const Outcome outcome = shell(mpirun_command(
      2, "soak erda --expect durable --runs 40 --seed 5 -o " + temporary.path().string()));
  EXPECT_EQ(outcome.code, 1) << outcome.text;
  EXPECT_NE(outcome.text.find("(seed 5, schedule "), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("(seed 6, schedule "), std::string::npos) << outcome.text;
  for (const std::string& file : files_in(temporary.path())) {
    EXPECT_NE(outcome.text.find("\n  perdura crash --replay " + file + "\n"), std::string::npos)
        << outcome.text;
  }
}

// With what it has found so far, and what it has tried.
TEST(SoakCommand, EndsSoonWhenItIsInterrupted) {
  const test::TemporaryFolder temporary;
  const fs::path log = temporary.path() / "log";
  Running soak(perdura_command("soak erda read-after-write --expect durable --minutes 60 -j 2 -o " +
                               temporary.path().string()),
               log);
  while (files_in(temporary.path()).empty()) {
    ASSERT_FALSE(soak.ends_within(std::chrono::milliseconds(20))) << read(log);
  }
  soak.signal(SIGINT);
  EXPECT_EQ(soak.wait(), 1) << read(log);
  const std::string text = read(log);
  EXPECT_NE(text.find("\ninterrupted before the time was over\n"), std::string::npos) << text;
  for (const std::string& file : files_in(temporary.path())) {
    EXPECT_NE(text.find("\n  perdura crash --replay " + file + "\n"), std::string::npos) << text;
    EXPECT_EQ(perdura("crash --replay " + file).code, 1) << text;
  }
}

// A finding whose choices are all 0: nothing happens in it.
Json plain_finding() {
  return {{"system", "erda"},
          {"setting", "persistence = correct"},
          {"server", "dmp ddio"},
          {"profile", "erda-connectx3"},
          {"expected", "durable"},
          {"kept", "durable-writes"},
          {"seed", 1},
          {"schedule", 1},
          {"streams", 6},
          {"late_placements", false},
          {"choices", ""},
          {"found", {"  => something"}}};
}

TEST(Replay, SaysWhenTheRunIsNotTheOneThatWasFound) {
  const test::TemporaryFolder temporary;
  const fs::path file = temporary.path() / "finding.json";
  std::ofstream(file) << plain_finding().dump();
  const Outcome outcome = perdura("crash --replay " + file.string());
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("this is not what was found"), std::string::npos) << outcome.text;
}

TEST(Replay, RefusesADamagedFileInOneLine) {
  const test::TemporaryFolder temporary;
  const fs::path file = temporary.path() / "finding.json";
  const auto with = [](const char* name, const Json& value) {
    Json finding = plain_finding();
    finding[name] = value;
    return finding.dump();
  };
  Json without_choices = plain_finding();
  without_choices.erase("choices");
  const std::string whole = plain_finding().dump(2);
  for (const std::string& damaged :
       {std::string(), whole.substr(0, whole.size() / 2), std::string("[1, 2]"),
        without_choices.dump(), with("choices", "client-0 1 x"), with("choices", 5),
        with("expected", "perfect"), with("system", "atlantis"), with("setting", "none"),
        with("server", "moon"), with("streams", 1), with("seed", "many"),
        with("profile", "nosuch")}) {
    std::ofstream(file) << damaged;
    const Outcome outcome = perdura("crash --replay " + file.string());
    EXPECT_EQ(outcome.code, 2) << damaged << "\n" << outcome.text;
    EXPECT_TRUE(outcome.text.starts_with("perdura: ")) << outcome.text;
    EXPECT_EQ(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 1) << outcome.text;
  }
}

}  // namespace
}  // namespace perdura
