// perdura soak, and perdura crash --replay of what it and perdura crash have found.
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

// The loss of a fixed history in its own words, which end with what is wrong.
std::string loss_in(const std::string& text) {
  const std::size_t begin = text.find("\ncrash point ");
  const std::size_t end = text.find("\n\n", begin);
  return begin == std::string::npos ? "" : text.substr(begin, end - begin);
}

TEST(Replay, RepeatsTheLossOfAFixedHistory) {
  const test::TemporaryFolder temporary;
  const std::string folder = temporary.path().string();
  const std::string explore =
      "crash erda --domain dmp --ddio on --seed 3 --points 0-90 -o " + folder;
  for (const std::string how : {"", " --persistence correct", " --parameter neighborhood=4"}) {
    const Outcome found = perdura(explore + how);
    EXPECT_EQ(found.code, 1) << found.text;
    const std::string command = "perdura crash --replay ";
    const std::size_t named = found.text.rfind(command) + command.size();
    const std::string file = found.text.substr(named, found.text.find(' ', named) - named);
    const fs::path picture = temporary.path() / "loss.svg";
    const Outcome replayed = perdura("crash --replay " + file + " --diagram " + picture.string());
    EXPECT_EQ(replayed.code, 1) << replayed.text;
    EXPECT_FALSE(loss_in(found.text).empty()) << found.text;
    EXPECT_EQ(loss_in(replayed.text), loss_in(found.text));
    EXPECT_NE(replayed.text.find("\nWrong: "), std::string::npos) << replayed.text;
    fs::path beside = file;
    EXPECT_EQ(read(picture), read(beside.replace_extension(".svg")));
    EXPECT_FALSE(read(picture).empty());
  }
  EXPECT_EQ(files_in(folder).size(), 3U) << "one of each setting";
}

TEST(Replay, RepeatsWhatSomeServersLose) {
  const test::TemporaryFolder temporary;
  const Outcome found = perdura(
      "crash m-sync --domain dmp --ddio on --transport ib --fails power:1 --points /40 "
      "--json -o " +
      temporary.path().string() + " 2>/dev/null");
  EXPECT_EQ(found.code, 1) << found.text;
  const Json answers = Json::parse(found.text);
  const auto file = answers[0]["replay"].get<std::string>();
  EXPECT_EQ(files_in(temporary.path()).front(), file);
  const Outcome replayed = perdura("crash --replay " + file);
  EXPECT_EQ(replayed.code, 1) << replayed.text;
  EXPECT_NE(replayed.text.find("\n" + answers[0]["trace"].get<std::string>()), std::string::npos)
      << replayed.text;
}

// The loss of a fixed history.
Json lost_history() {
  return {{"system", "erda"},
          {"setting", "persistence = correct"},
          {"server", "dmp ddio"},
          {"profile", "erda-connectx3"},
          {"late_placements", false},
          {"expected", "durable"},
          {"kept", "durable-writes"},
          {"seed", 1},
          {"history", "slow-writer"},
          {"image", "recovery 1"},
          {"choices", "crash-point 191201853; image 0 1 1"},
          {"streams", 6},
          {"found", {"crash point 73 of 207", "  => something"}}};
}

Outcome replay(const fs::path& folder, const Json& finding) {
  const fs::path file = folder / "finding.json";
  std::ofstream(file) << finding.dump();
  return perdura("crash --replay " + file.string());
}

TEST(Replay, SaysThatAFixedHistoryLosesNothingAnyMore) {
  const test::TemporaryFolder temporary;
  Json finding = lost_history();
  const Outcome other = replay(temporary.path(), finding);
  EXPECT_EQ(other.code, 1) << other.text;
  EXPECT_NE(other.text.find("\nthis is not what was found"), std::string::npos) << other.text;
  finding["server"] = "wsp ddio";  // nothing is lost there
  const Outcome mended = replay(temporary.path(), finding);
  EXPECT_EQ(mended.code, 0) << mended.text;
  EXPECT_EQ(mended.text.find("erda, persistence = correct on wsp ddio: nothing is lost at crash "
                             "point 73 of 207\nthis is not what was found"),
            0U)
      << mended.text;
}

TEST(Replay, RefusesADamagedLossOfAFixedHistoryInOneLine) {
  const test::TemporaryFolder temporary;
  const std::vector<std::pair<const char*, Json>> damages{
      {"history", "quick-writer"},
      {"history", ""},
      {"history", 5},
      {"history", "sequences:1"},  // which this service does not have
      {"history", "sequences:99"},
      {"choices", "crash-point x"},
      {"choices", "crash-point 18446744073709551615"},
      {"choices", "fails 9"},
      {"choices", "fails 0 1 7"},
      {"choices", "client-0 1"},
      {"expected", "none"},
      {"kept", "perfect"},
      {"image", 5},
      {"found", "nothing"},
      {"streams", 5},
      {"seed", -1},
      {"system", "atlantis"},
      {"setting", "neighborhood = 4"},
      {"parameters", {"neighborhood=4"}},
      {"server", "dmp ddio iwarp"},  // on which the system cannot run
      {"profile", "nosuch"}};
  for (const auto& [name, value] : damages) {
    Json finding = lost_history();
    finding[name] = value;
    const Outcome outcome = replay(temporary.path(), finding);
    EXPECT_EQ(outcome.code, 2) << name << " " << value.dump() << "\n" << outcome.text;
    EXPECT_TRUE(outcome.text.starts_with("perdura: ")) << outcome.text;
    EXPECT_EQ(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 1) << outcome.text;
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
