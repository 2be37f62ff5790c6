// Methods as text: what a user may write, and what is said of mistakes.
#include <gtest/gtest.h>

#include "methods/method.h"
#include "platform/base/error.h"

namespace perdura::methods {
namespace {

std::string complaint(const std::string& text) {
  try {
    read_method(text, "mine");
  } catch (const pmem::ProgramError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Reading, AMethodOfAUsers) {
  const Method method = read_method(
      "# a log record and its tail\n"
      "method mine: ordered write\n"
      "  requester: write a; flush; atomic-write b; flush; completion\n",
      "file");
  EXPECT_EQ(method.name, "mine");
  EXPECT_EQ(method.update, Update::ordered);
  EXPECT_EQ(method.program, find_method("ordered-write-atomic").program);
}

TEST(Reading, TheKindIsSeenFromTheSteps) {
  const Method method = read_method("requester: send a; flush; completion", "mine");
  EXPECT_EQ(method.name, "mine");
  EXPECT_EQ(method.update, Update::single);
  EXPECT_EQ(method.carrier, Carrier::send);
}

TEST(Reading, EveryMethodCanBePrintedAndReadAgain) {
  for (const Method& method : methods()) {
    const std::string text = to_text(method);
    const Method again = read_method(text, "file");
    EXPECT_EQ(again.name, method.name);
    EXPECT_EQ(again.update, method.update) << text;
    EXPECT_EQ(again.carrier, method.carrier) << text;
    EXPECT_EQ(again.program, method.program) << text;
  }
}

TEST(Reading, APrintedMethodIsWrittenAsInTheFileOfAllMethods) {
  EXPECT_EQ(to_text(find_method("link-and-persist-flush")),
            "method link-and-persist-flush: publish write\n"
            "  requester: write a; flush; cas b=1; flush; completion; cas b=2\n"
            "  requester 2: await b=1; cas b=1; flush; completion; cas b=3\n");
  EXPECT_EQ(to_text(find_method("publish-cas-message")),
            "method publish-cas-message: publish write\n"
            "  requester: write a; send &a; receive ack; cas b; fenced send &b; receive ack\n"
            "  responder: receive; flush a; send ack; receive; flush b; send ack\n"
            "  requester 2: await b; send &b; receive ack\n"
            "  responder 2: receive; flush b; send ack\n");
}

TEST(Reading, MistakesHaveLineAndColumn) {
  EXPECT_EQ(
      complaint("requester: write a; flsh; completion"),
      "line 1, column 21: \"flsh\" is no step of a requester; known are write, write-imm, "
      "send, atomic-write, cas, fetch-add, read, flush, flush-persistence, completion, receive, "
      "await");
  EXPECT_EQ(complaint("\nrequester: write"), "line 2, column 17: expected the name of a variable");
  EXPECT_EQ(
      complaint("# nothing\nrequestor: write a"),
      "line 2, column 1: a line starts with \"method NAME:\", \"requester:\" or "
      "\"responder:\", or for readers with \"requester 2:\" or \"responder 2:\"; '#' begins a "
      "comment");
  EXPECT_EQ(complaint("requester: write a flush"),
            "line 1, column 20: expected ';' between steps, found \"flush\"");
  EXPECT_EQ(complaint("requester: write a\nrequester: write b"),
            "line 2, column 1: there is a requester 1 already");
  EXPECT_EQ(complaint("method x: double write\nrequester: write a"),
            "line 1, column 11: \"double\" is none of single, ordered, publish");
  EXPECT_EQ(complaint("requester: write c"),
            "line 1, column 1: a method updates \"a\", or \"a\" and then \"b\"; there is a \"c\"");
  EXPECT_EQ(complaint("# one step\nmethod x: single send\nrequester: write a; completion"),
            "line 2, column 1: the method is said to carry \"a\" by send, but the requester has no "
            "step \"send a\"");
  EXPECT_EQ(complaint(""), "line 1, column 1: no steps");
}

TEST(Reading, UnknownNamesAreRefusedWithTheKnownOnes) {
  try {
    find_method("write-flsh");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(
        std::string(error.what())
            .find("unknown method 'write-flsh' (did you mean 'write-flush'?); known are: write-m"),
        std::string::npos);
  }
}

}  // namespace
}  // namespace perdura::methods
