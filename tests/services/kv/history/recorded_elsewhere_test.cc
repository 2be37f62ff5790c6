// Histories in the formats of other checkers: what is read, what is refused, and the verdicts.
#include "services/kv/history/recorded_elsewhere.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "platform/base/error.h"
#include "services/kv/history/edn.h"
#include "services/kv/history/formats.h"
#include "tests/services/kv/history/builder.h"
#include "tests/services/kv/history/random_history.h"
#include "tests/support/seed.h"

namespace perdura::history::test {
namespace {

namespace fs = std::filesystem;
using Decision = services::Linearizability::Decision;

RegisterVerdict verdict_on(const std::string& text, const RegisterLimits& limits = {}) {
  RegisterHistory history = read_recorded(text, notation_of(text));
  return check_registers(history, limits);
}

std::string whole(const fs::path& file) {
  std::ifstream input(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()};
}

// The names of the files in the folder begin with the verdict.
TEST(RecordedElsewhere, EachFileIsJudgedAsItsNameSays) {
  const std::map<std::string, Decision> verdicts{{"good", Decision::linearizable},
                                                 {"bad", Decision::violated},
                                                 {"unknown", Decision::undecided}};
  std::map<std::string, int> met;
  for (const auto& entry : fs::directory_iterator(PERDURA_RECORDED)) {
    const std::string name = entry.path().filename().string();
    const std::string word = name.substr(0, name.find('-'));
    ASSERT_TRUE(verdicts.contains(word)) << name;
    const RegisterVerdict verdict = verdict_on(whole(entry.path()));
    EXPECT_EQ(verdict.decision, verdicts.at(word)) << name << ": " << verdict.what;
    EXPECT_EQ(verdict.what.find('\n'), std::string::npos) << name;
    ++met[word];
  }
  EXPECT_GE(met["good"], 6);
  EXPECT_GE(met["bad"], 6);
  EXPECT_GE(met["unknown"], 3);
}

TEST(RecordedElsewhere, SaysWhichOperationIsImpossibleAndWhere) {
  EXPECT_EQ(verdict_on(whole(fs::path(PERDURA_RECORDED) / "bad-register-of-jepsen.edn")).what,
            "3 operations on 1 keys: violated; a read of 3, which begins in line 5, is impossible "
            "after what took effect before it");
  EXPECT_EQ(verdict_on(whole(fs::path(PERDURA_RECORDED) / "bad-independent-keys.edn")).what,
            "5 operations on 2 keys: violated; key 7: a read of 1, which begins in line 9, is "
            "impossible after what took effect before it");
  EXPECT_EQ(verdict_on(whole(fs::path(PERDURA_RECORDED) / "unknown-transactions.edn")).what,
            "0 operations on 0 keys: undecided: line 1: operation :txn is not known; known are "
            "read, write, cas, get, put, append and delete");
}

TEST(RecordedElsewhere, WhatRegistersHoldAtFirstMayBeGiven) {
  const std::string text = whole(fs::path(PERDURA_RECORDED) / "unknown-what-it-held-at-first.edn");
  EXPECT_EQ(verdict_on(text).what,
            "2 operations on 1 keys: undecided: it depends on what it held at first; give that by "
            "--initial");
  EXPECT_EQ(verdict_on(text, {.at_first = "0"}).decision, Decision::linearizable);
  EXPECT_EQ(verdict_on(text, {.at_first = "nil"}).decision, Decision::violated);
}

// What perdura writes for Jepsen and for Porcupine it reads again, with the same verdict.
TEST(RecordedElsewhere, OwnHistoriesKeepTheirVerdict) {
  const std::uint32_t seed = perdura::test::random_seed();
  std::mt19937_64 random(seed);
  std::map<bool, int> met;
  for (int i = 0; i < 1500; ++i) {
    const History history = RandomHistory(random, {.operations = 9, .lost_of_ten = 2}).make();
    const bool expected = check(history).accepted();
    const RegisterLimits empty{.at_first = "nil"};
    const auto decision = expected ? Decision::linearizable : Decision::violated;
    if (history.size() == 0) continue;
    const std::string edn = to_edn(history);
    if (!edn.empty()) {
      ASSERT_EQ(verdict_on(edn, empty).decision, decision)
          << "history " << i << ", seed " << seed << "\n"
          << edn;
    }
    ASSERT_EQ(verdict_on(to_json(history)).decision, decision)
        << "history " << i << ", seed " << seed;
    ++met[expected];
  }
  EXPECT_GT(met[false], 100);
  EXPECT_GT(met[true], 100);
}

std::string mistake_in(const std::string& text) {
  try {
    static_cast<void>(read_recorded(text, notation_of(text)));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

struct Mistake {
  const char* text;
  const char* problem;
};

TEST(RecordedElsewhere, MistakesAreSaidWithTheirLine) {
  const Mistake mistakes[] = {
      {"", "line 1: it is not JSON: it ends too early"},
      {"[{\"Input\":", "line 1: it is not JSON: it ends too early"},
      {"[\n{\"ClientId\" 0}]", "line 2, column 13: it is not JSON"},
      {"{\"a\": 1}", "it is no array of operations"},
      {"[\n 7]", "line 2: operation 0: it has no Input or no Call"},
      {"[{\"Input\":{\"op\":\"get\"},\n\"Call\":5,\"Output\":{\"value\":1},\"Return\":4}]",
       "line 1: operation 0: it returns before it is called"},
      {"[{\"Input\":{\"op\":\"get\"},\"Call\":5,\"Output\":{},\"Return\":7},\n\n{\"Call\":1}]",
       "line 3: operation 1: it has no Input or no Call"},
      {"{:process 0, :type :invoke, :f :read\n",
       "line 1: it is not EDN: nothing closes it with '}'"},
      {"{:process 0, :type :invoke, :f}\n",
       "line 1: it is not EDN: a map has a key without a value"},
      {"{:process 0 :type :invoke :f :read}\n]", "line 2: it is not EDN: ']' closes nothing"},
      {"{:f :read}", "line 1: there is no :process or no :type"},
      {"{:process 0 :type :begun :f :read}", "line 1: :type :begun is not known"},
      {"{:process 0 :type :invoke :f :read}\n{:process 0 :type :invoke :f :read}",
       "line 2: process 0 begins an operation, and that of line 1 has not ended"},
      {"{:process 0 :type :ok :f :read :value 1}",
       "line 1: process 0 ends an operation that it did not begin"},
      {"{:process 0 :type :invoke :f :cas :value 4}\n{:process 0 :type :ok :f :cas :value 4}",
       "line 1: the value of a cas is no pair [OLD NEW]"},
      {"nothing of interest\n", "there is no operation in it"},
      {";\n", "there is no operation in it"},
  };
  for (const Mistake& each : mistakes) {
    EXPECT_EQ(mistake_in(each.text), each.problem) << each.text;
  }
  const std::string deep(1000, '[');
  EXPECT_EQ(mistake_in("{" + deep), "line 1: it is not EDN: it is nested deeper than 100");
}

// Whatever is cut off, the reader ends.
TEST(RecordedElsewhere, CutFilesAreReadOrRefused) {
  for (const auto& entry : fs::directory_iterator(PERDURA_RECORDED)) {
    const std::string text = whole(entry.path());
    const Notation notation = notation_of(text);
    for (std::size_t length = 0; length <= text.size(); length += 3) {
      try {
        RegisterHistory history = read_recorded(text.substr(0, length), notation);
        static_cast<void>(check_registers(history));
      } catch (const UsageError& error) {
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      }
    }
  }
}

TEST(Edn, NotationsOfEqualValuesAreEqual) {
  std::vector<std::string> values;
  for_each_edn(
      "5 5N +5 -5 #_ 7 nil, :a \\( \"a\\\"b\" [1, 2] (1 2) #{3} #a.b{:c 4} #inst \"x\" ; end",
      [&](const Edn& value) { values.push_back(value.canonical()); });
  EXPECT_EQ(values, (std::vector<std::string>{"5", "5", "5", "-5", "nil", ":a", "\\(", "\"a\"b\"",
                                              "[1 2]", "[1 2]", "[3]", "{:c 4}", "\"x\""}));
}

}  // namespace
}  // namespace perdura::history::test
