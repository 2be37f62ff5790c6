// Which guarantees a history kept: histories written by hand.
#include "services/kv/crash_verdict.h"

#include <gtest/gtest.h>

#include <array>

namespace perdura::services::test {
namespace {

using history::History;
using history::Kind;
using history::Operation;
using history::Outcome;

constexpr std::uint32_t kReader = 2;
constexpr std::uint64_t kAbsent = 0;
constexpr std::int64_t kFailure = 100;  // us

Time at(std::int64_t microseconds) { return Time(Microseconds(microseconds)); }

Operation operation(Kind kind, std::uint64_t version, std::int64_t start, std::uint32_t client) {
  return {.key = 0,
          .version = version,
          .start = at(start),
          .end = at(start + 1),
          .client = client,
          .kind = kind,
          .outcome = kind == Kind::get && version == kAbsent ? Outcome::not_found : Outcome::ok};
}

// The same, under way when the power failed.
Operation unanswered(Kind kind, std::uint64_t version, std::int64_t start, std::uint32_t client) {
  Operation under_way = operation(kind, version, start, client);
  under_way.outcome = Outcome::unknown;
  return under_way;
}

const std::array kFailures{at(kFailure)};

// Versions 1, 2 and 3 were acknowledged, 4 was under way; the reader finds what it finds.
Verdict find(const std::vector<std::uint64_t>& versions, const std::string& problem = "") {
  History history;
  for (const std::uint64_t version : {1, 2, 3}) {
    history.add(operation(Kind::put, version, static_cast<std::int64_t>(10 * version), 0));
  }
  history.add(unanswered(Kind::put, 4, kFailure - 1, 1));
  std::int64_t start = 2 * kFailure;
  for (const std::uint64_t version : versions) {
    history.add(operation(Kind::get, version, start += 10, kReader));
  }
  return judge_crash(history, kFailures, kReader, problem);
}

std::string kept(const Verdict& verdict) {
  return std::string(verdict.holds(Condition::durable) ? "d" : "-") +
         (verdict.holds(Condition::ordered) ? "o" : "-") +
         (verdict.holds(Condition::atomic) ? "a" : "-");
}

TEST(Verdict, IsTheStrongestThatWasKept) {
  EXPECT_EQ(kept(find({3, 3})), "doa");
  EXPECT_EQ(kept(find({4, 4})), "doa") << "it was under way";
  EXPECT_EQ(kept(find({2, 2})), "-oa") << "old instead of new";
  EXPECT_EQ(kept(find({1, 1})), "--a") << "two versions are lost";
  EXPECT_EQ(kept(find({kAbsent, kAbsent})), "--a") << "once it was absent";
  EXPECT_EQ(kept(find({7, 7})), "---") << "nobody wrote that";
  EXPECT_EQ(kept(find({2, 3})), "---") << "what was lost is back";
  EXPECT_EQ(kept(find({3, 2})), "---") << "lost without a failure";
}

// What survives of which: writes that were acknowledged, and what gets have returned.
std::string survives(const Verdict& verdict) {
  return std::string(verdict.holds(Condition::acknowledged) ? "a" : "-") +
         (verdict.holds(Condition::observed) ? "o" : "-") +
         (verdict.holds(Condition::durable) ? "d" : "-");
}

// Version 1 was acknowledged; `change` was under way, and `read` was read by then.
Verdict find_after_a_read(const Operation& change, std::uint64_t read, std::uint64_t found) {
  History history;
  history.add(operation(Kind::put, 1, 10, 0));
  history.add(change);
  history.add(operation(Kind::get, read, 30, 1));
  history.add(operation(Kind::get, found, 2 * kFailure, kReader));
  return judge_crash(history, kFailures, kReader, "");
}

Verdict find_after_a_read(std::uint64_t read, std::uint64_t found) {
  return find_after_a_read(unanswered(Kind::put, 2, 20, 0), read, found);
}

TEST(Verdict, JudgesWhatWasAcknowledgedAndWhatWasReadApart) {
  EXPECT_EQ(survives(find_after_a_read(2, 2)), "aod");
  EXPECT_EQ(survives(find_after_a_read(1, 2)), "aod") << "it was under way";
  EXPECT_EQ(survives(find_after_a_read(1, 1)), "aod");
  const Verdict dirty = find_after_a_read(2, 1);
  EXPECT_EQ(survives(dirty), "a--") << "a reader saw what was not acknowledged";
  EXPECT_EQ(kept(dirty), "-oa") << "at most the last change";
  EXPECT_EQ(survives(find_after_a_read(2, kAbsent)), "---");
  EXPECT_EQ(survives(find_after_a_read(1, kAbsent)), "---") << "both were told of version 1";
  EXPECT_EQ(survives(find({2, 2})), "-o-") << "nobody read version 3";
}

// A delete that a get has seen, and that is not acknowledged.
TEST(Verdict, WhatIsMissingIsReadToo) {
  const Operation change = unanswered(Kind::erase, 0, 20, 0);
  EXPECT_EQ(survives(find_after_a_read(change, kAbsent, 1)), "a--");
}

TEST(Verdict, AStoreThatCannotBeUsedKeepsNothing) {
  const Verdict verdict = find({}, "recovery fails: damaged");
  EXPECT_EQ(kept(verdict), "---");
  EXPECT_NE(verdict.why(Condition::atomic).find("recovery fails: damaged"), std::string::npos);
}

TEST(Verdict, AnErrorIsNoState) {
  History history;
  history.add(operation(Kind::put, 1, 10, 0));
  Operation torn = operation(Kind::get, 1, 200, kReader);
  torn.outcome = Outcome::torn;
  history.add(torn);
  EXPECT_EQ(kept(judge_crash(history, kFailures, kReader, "")), "---");
}

TEST(Verdict, TheTraceHasTheFailureInItsPlace) {
  const std::string trace = find({2, 2}).why(Condition::durable);
  const auto place = [&](std::string_view part) { return trace.find(part); };
  EXPECT_LT(place("put of version 3 by client 0"), place("put of version 4 by client 1"));
  EXPECT_LT(place("never answered"), place("the server fails at 100.000 us"));
  EXPECT_LT(place("the server fails"), place("get of version 2 by client 2"));
  EXPECT_LT(place("get of version 2 by client 2"), place("=> key 0"));
  EXPECT_NE(place("=> key 0"), std::string::npos) << trace;
}

}  // namespace
}  // namespace perdura::services::test
