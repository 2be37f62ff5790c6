// Names that are mistyped.
#include "platform/base/suggestion.h"

#include <gtest/gtest.h>

#include <array>

namespace perdura {
namespace {

constexpr std::array<std::string_view, 5> kCommands{"list", "plan", "run", "report", "guarantees"};

TEST(Suggestion, IsWhatDiffersByASlip) {
  EXPECT_EQ(nearest("rnu", kCommands), "run");
  EXPECT_EQ(nearest("reprot", kCommands), "report");
  EXPECT_EQ(nearest("Lists", kCommands), "list");
  EXPECT_EQ(nearest("guar", kCommands), "guarantees") << "it begins so";
  EXPECT_EQ(nearest("plna", kCommands), "plan");
}

TEST(Suggestion, IsNoneOfWhatDiffersByMore) {
  for (const auto* name : {"", "x", "dance", "lyric", "guesses at most"}) {
    EXPECT_EQ(nearest(name, kCommands), "") << name;
  }
  EXPECT_EQ(nearest(std::string(1'000'000, 'a'), kCommands), "");
}

TEST(Suggestion, StandsBeforeWhatIsKnown) {
  EXPECT_EQ(unknown_name("command", "rnu", kCommands),
            "unknown command 'rnu' (did you mean 'run'?); known are: list, plan, run, report, "
            "guarantees");
  EXPECT_EQ(unknown_name("key", "dance", kCommands, " in [a]"),
            "unknown key 'dance' in [a]; known are: list, plan, run, report, guarantees");
}

TEST(Suggestion, ReportsTheMistypedOneOfSeveralUnknownNames) {
  const auto reported = [](std::initializer_list<std::string_view> names) -> std::string_view {
    const std::string_view* const found =
        mistyped(std::span(names.begin(), names.size()), kCommands);
    return found == nullptr ? "none" : *found;
  };
  EXPECT_EQ(reported({"list", "plan"}), "none");
  EXPECT_EQ(reported({}), "none");
  EXPECT_EQ(reported({"list", "dance", "lyric"}), "dance");
  EXPECT_EQ(reported({"dance", "list", "rnu", "plna"}), "rnu") << "the others may follow from it";
}

}  // namespace
}  // namespace perdura
