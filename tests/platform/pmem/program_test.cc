#include "platform/pmem/model/program.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "platform/base/error.h"
#include "platform/pmem/model/choices.h"
#include "platform/pmem/model/explorer.h"

namespace perdura::pmem {
namespace {

std::string to_text(const Program& program) {
  std::string text;
  for (const Agent& agent : program.agents) {
    text += fmt::format("{}:", to_string(program, agent));
    for (const Step& step : agent.steps) text += fmt::format(" {};", to_string(program, step));
    text += '\n';
  }
  return text;
}

std::string error_of(std::string_view text) {
  try {
    parse_program(text);
  } catch (const ProgramError& error) {
    return error.what();
  }
  return "";
}

TEST(Program, IsWrittenAsItIsRead) {
  const std::string text =
      "requester: write a,b=2; write-imm c; send a,c=3; send &a,&b; atomic-write a=255;"
      " fetch-add b; read; flush; flush-persistence a,b; completion; receive ack;"
      " fenced write a; relaxed write a; fenced relaxed write a;\n"
      "responder: receive; copy a,b; flush a; send ack; store a=2; stream b; clwb a; clflush b;"
      " fence; await c;\n";
  const Program program = parse_program(text);
  EXPECT_EQ(to_text(program), text);
  EXPECT_EQ(parse_program(to_text(program)), program);
}

TEST(Program, OfSeveralAgentsIsWrittenAsItIsRead) {
  const std::string text =
      "requester 1: send a; receive ack 1;\n"
      "requester 2: write-imm b; receive ack 2;\n"
      "responder 1: receive 2; receive 1; copy a; send ack 2; send ack 1;\n"
      "responder 2: await b;\n";
  const Program program = parse_program(text);
  EXPECT_EQ(to_text(program), text);
  // Without a number, the peer is the one of the same number.
  const Program second = parse_program("requester 2: send a\nresponder 2: receive; send ack\n");
  EXPECT_EQ(second.agents[1].steps[0].peer, 1U);
  EXPECT_EQ(to_text(second), "requester 2: send a;\nresponder 2: receive 2; send ack 2;\n");
  EXPECT_EQ(parse_program(to_text(second)), second);
}

TEST(Program, MayHaveCommentsSpaceAndEmptyLines) {
  const Program program = parse_program(
      "# what it is for\n\n  requester :write a ;  completion;  # and so on\n\t\nresponder:\n");
  ASSERT_EQ(program.agents.size(), 2U);
  EXPECT_EQ(program.agents[0].steps.size(), 2U);
  EXPECT_TRUE(program.agents[1].steps.empty());
}

TEST(Program, AgentLinesAreToldFromOthers) {
  Program program;
  EXPECT_FALSE(parse_agent("finally: a=0", 1, program));
  EXPECT_FALSE(parse_agent("", 2, program));
  EXPECT_TRUE(parse_agent("requester: read", 3, program));
  EXPECT_EQ(program.agents.size(), 1U);
}

TEST(Program, SaysWhatIsWrongAndWhere) {
  const std::string requester =
      "write, write-imm, send, atomic-write, cas, fetch-add, read, flush, flush-persistence, "
      "completion, "
      "receive, await";
  const std::string responder =
      "receive, copy, flush, send, store, stream, clwb, clflush, fence, await";
  EXPECT_EQ(error_of(""), "line 1, column 1: no steps");
  EXPECT_EQ(error_of("\n# nothing\n"), "line 2, column 1: no steps");
  EXPECT_EQ(error_of("\n  server: read"),
            "line 2, column 3: a line starts with \"requester:\" or \"responder:\", or with one of "
            "several, such as \"requester 2:\"; '#' begins a comment");
  EXPECT_EQ(error_of("requester read"), "line 1, column 11: expected ':' after \"requester\"");
  EXPECT_EQ(error_of("requester 0: read"), "line 1, column 11: numbers start at 1");
  EXPECT_EQ(error_of("requester: read\nrequester 1: read"),
            "line 2, column 1: there is a requester 1 already");
  EXPECT_EQ(error_of("requester: read read"),
            "line 1, column 17: expected ';' between steps, found \"read\"");
  EXPECT_EQ(error_of("requester: store a"),
            "line 1, column 12: \"store\" is no step of a requester; known are " + requester);
  EXPECT_EQ(error_of("responder: fenced store a"),
            "line 1, column 12: \"fenced\" is no step of a responder; known are " + responder);
  EXPECT_EQ(error_of("requester: fenced"),
            "line 1, column 18: \"\" is no step of a requester; known are " + requester);
  EXPECT_EQ(error_of("requester: read; write"),
            "line 1, column 23: expected the name of a variable");
  EXPECT_EQ(error_of("requester: write a,"), "line 1, column 20: expected the name of a variable");
  EXPECT_EQ(error_of("requester: write a=0"), "line 1, column 20: numbers start at 1");
  EXPECT_EQ(error_of("requester: write a=256"),
            "line 1, column 20: expected a value from 1 to 255");
  EXPECT_EQ(error_of("requester: write a=x"), "line 1, column 20: expected a value from 1 to 255");
  EXPECT_EQ(error_of("requester: receive 2"),
            "line 1, column 20: expected \"ack\" after \"receive\"");
  EXPECT_EQ(error_of("responder: send a"), "line 1, column 17: expected \"ack\" after \"send\"");
  EXPECT_EQ(error_of("requester: completion"),
            "line 1, column 12: there is no operation before whose completion could come");
  EXPECT_EQ(error_of("requester: receive ack; completion"),
            "line 1, column 25: there is no operation before whose completion could come");
  EXPECT_EQ(error_of("responder: store a; copy a"),
            "line 1, column 21: there is nothing to copy before a \"receive\"");
  EXPECT_EQ(error_of("requester: send &a,b"),
            "line 1, column 20: a message carries values or names, not both: expected '&'");
  EXPECT_EQ(error_of("requester: write &a"), "line 1, column 18: expected the name of a variable");
}

Explored explored(const std::string& text) {
  const Program program = parse_program(text);
  ProgramExplorer explorer(program, {});
  return explorer.explore([](const Instant&) { return true; });
}

// A moment is how far each agent has come.
TEST(Explorer, TriesEveryMoment) {
  EXPECT_EQ(explored("requester: read; read; read\n").instants, 4U);
  EXPECT_EQ(explored("requester: read; read\nrequester 2: read; read; read\n").instants, 12U);
  // Not the receive before the send.
  EXPECT_EQ(explored("requester: send a; read\nresponder: receive; fence\n").instants, 7U);
}

// And in which order they changed the same lines.
TEST(Explorer, TriesOrdersThatDiffer) {
  EXPECT_EQ(explored("responder: store a\nresponder 2: store b\n").instants, 4U);
  EXPECT_EQ(explored("responder: store a\nresponder 2: store a=2\n").instants, 5U);
  // The WRITE takes effect any time later.
  EXPECT_EQ(explored("requester: write a\nresponder: store b\n").instants, 4U);
  EXPECT_EQ(explored("requester: write a\nresponder: store a=2\n").instants, 7U);
}

TEST(Explorer, SaysWhoWaitsForWhatNeverComes) {
  EXPECT_FALSE(explored("requester: send a\nresponder: receive\n").stuck);
  for (const std::string text :
       {"responder: fence; receive\n", "requester: read; receive ack\n",
        "responder: fence; await a\n", "responder: fence; await a=2\nrequester: write a\n",
        "requester: read; receive ack; send a\nresponder: receive; send ack\n"}) {
    const auto stuck = explored(text).stuck;
    ASSERT_TRUE(stuck) << text;
    EXPECT_EQ(stuck->agent, 0U) << text;
    EXPECT_EQ(stuck->step, 1U) << text;
  }
}

TEST(Explorer, StopsWhenTheJudgeIsSatisfied) {
  const Program program = parse_program("requester: write a; write b");
  ProgramExplorer explorer(program, {});
  const Explored some =
      explorer.explore([](const Instant& instant) { return instant.done[0] == 0; });
  EXPECT_TRUE(some.cut_short);
  EXPECT_EQ(some.instants, 2U);
  EXPECT_EQ(some.images, 2U);
}

// --- choices -------------------------------------------------------------------------------------

TEST(Choices, EnumeratorTriesAllSequencesOnce) {
  std::vector<std::string> seen;
  Enumerator all;
  while (all.next()) {
    const std::size_t first = all.choose(3);
    std::string sequence = fmt::format("{}", first);
    for (std::size_t i = 0; i < first; ++i) sequence += fmt::format("{}", all.choose(2));
    seen.push_back(sequence);
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"0", "10", "11", "200", "201", "210", "211"}));
  EXPECT_EQ(all.sequences(), 7U);
}

TEST(Choices, EnumeratorTellsARunThatIsNotDeterministic) {
  Enumerator all;
  ASSERT_TRUE(all.next());
  all.choose(2);
  ASSERT_TRUE(all.next());
  EXPECT_THROW(all.choose(3), PlatformError);
}

TEST(Choices, RandomOnesAreReplayedByTheirSeed) {
  RandomChoices one(1);
  RandomChoices same(1);
  RandomChoices other(2);
  std::vector<int> counts(5);
  int equal = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::size_t choice = one.choose(5);
    ASSERT_LT(choice, 5U);
    ASSERT_EQ(choice, same.choose(5));
    if (choice == other.choose(5)) ++equal;
    ++counts[choice];
  }
  for (const int count : counts) EXPECT_NEAR(count, 200, 60);
  EXPECT_NEAR(equal, 200, 60);
}

}  // namespace
}  // namespace perdura::pmem
