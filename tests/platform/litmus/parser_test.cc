// Mistakes in litmus tests are found, and where they are is said.
#include <gtest/gtest.h>

#include "platform/litmus/litmus.h"

namespace perdura::litmus {
namespace {

std::string mistake_in(const std::string& text) {
  try {
    parse(text, "mine");
  } catch (const LitmusError& error) {
    return error.what();
  }
  return "";
}

TEST(LitmusParser, ReadsATest) {
  const std::vector<Litmus> tests = parse(
      "litmus: two lines\n"
      "source: a book  # and a comment\n"
      "memory: x[2]@0=3 z[2]@2\n"
      "node 0: fenced write z x via 2; wait; a = x.1\n"
      "allowed: a=3 z.1=3\n"
      "forbidden: a=0\n",
      "mine");
  ASSERT_EQ(tests.size(), 1U);
  const Litmus& litmus = tests[0];
  EXPECT_EQ(litmus.title, "two lines");
  EXPECT_EQ(litmus.source, "a book");
  EXPECT_EQ(litmus.where, "mine:1");
  EXPECT_EQ(litmus.nodes, 3U);
  ASSERT_EQ(litmus.programs.size(), 1U);
  const Step& write = litmus.programs[0].steps[0];
  EXPECT_EQ(write.kind, StepKind::write);
  EXPECT_TRUE(write.flags.fenced);
  EXPECT_TRUE(write.second_queue_pair);
  EXPECT_EQ(write.peer, 2U);
  EXPECT_EQ(litmus.programs[0].steps[2].local.line, 1U);
  // The register, then the words of memory.
  EXPECT_TRUE(matches(litmus.outcomes[0], {3, 0, 0, 0, 3}));
  EXPECT_FALSE(matches(litmus.outcomes[0], {3, 0, 0, 0, 0}));
}

TEST(LitmusParser, SaysWhereAMistakeIs) {
  const std::string begin = "litmus: a\nmemory: x@0 z@1\n";
  EXPECT_EQ(mistake_in("node 0: x = 1\n"), "mine:1: the first line of a test is \"litmus: TITLE\"");
  EXPECT_EQ(mistake_in("litmus: a\nmemory: x\n"), "mine:2: \"x\": a location is x@NODE");
  EXPECT_EQ(mistake_in(begin + "node 0: dance\n"), "mine:3: \"dance\" is no step");
  EXPECT_EQ(mistake_in(begin + "node 0: z = 1\n"), "mine:3: \"z\" is not on this node");
  EXPECT_EQ(mistake_in(begin + "node 0: write y x\n"), "mine:3: \"y\" is no location");
  EXPECT_EQ(mistake_in(begin + "node 0: x = one\n"), "mine:3: \"one\" is not a number");
  EXPECT_EQ(mistake_in(begin + "node 0: a = x; a = x\n"), "mine:3: register a has a value already");
  EXPECT_EQ(mistake_in(begin + "node 0: x = 1\nallowed: b=1\n"),
            "mine:4: \"b=1\": an outcome is of registers and locations, a=1");
  EXPECT_EQ(mistake_in(begin + "node 0: x = 1\n"), "mine:1: a test has programs and outcomes");
}

}  // namespace
}  // namespace perdura::litmus
