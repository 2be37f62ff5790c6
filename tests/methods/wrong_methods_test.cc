// Methods that are wrong, each with what the explorer must find, and a trace that shows it.
#include <gtest/gtest.h>

#include "methods/proof.h"
#include "tests/methods/configurations.h"

namespace perdura::methods {
namespace {

using pmem::Medium;
using pmem::Transport;

struct Wrong {
  const char* why;
  const char* steps;
  Configuration configuration;
  std::set<Breach> breaches;
};

const std::set<Breach> kLost{Breach::lost};
const std::set<Breach> kTornOrLost{Breach::torn, Breach::lost};
const std::set<Breach> kReordered{Breach::out_of_order};

const Wrong kWrong[] = {
    {"a completion says only that the device has it", "requester: write a; completion",
     on(kDmp, false), kTornOrLost},
    {"with DDIO a READ flushes into the cache", "requester: write a; read; completion",
     on(kDmp, true), kTornOrLost},
    {"the FLUSH is not awaited", "requester: write a; flush", on(kMhp, true), kTornOrLost},
    {"the FLUSH is of nothing yet", "requester: flush; write a; completion", on(kMhp, true),
     kTornOrLost},
    {"iWARP completes before the device has it", "requester: write a; completion",
     on(kWsp, true, Medium::dram, Transport::iwarp), kTornOrLost},
    {"a message in DRAM is gone", "requester: send a; flush; completion", on(kMhp, true), kLost},
    {"even on batteries", "requester: send a; completion", on(kWsp, false), kLost},
    {"the copy stays in the cache",
     "requester: send a; receive ack\nresponder: receive; copy a; send ack", on(kDmp, false),
     kTornOrLost},
    {"acknowledged before it is flushed",
     "requester: send a; receive ack\nresponder: receive; copy a; send ack; flush a",
     on(kDmp, true), kTornOrLost},
    {"flushed before it is copied",
     "requester: send a; receive ack\nresponder: receive; flush a; copy a; send ack",
     on(kDmp, true), kTornOrLost},
    {"flushed before it has arrived",
     "requester: write a; send &a; receive ack\nresponder: flush a; receive; send ack",
     on(kDmp, true), kTornOrLost},
    {"clwb without a fence",
     "requester: write a; send &a; receive ack\nresponder: receive; clwb a; send ack",
     on(kDmp, true), kTornOrLost},
    {"the tail is flushed with the record",
     "requester: send a,b; receive ack\nresponder: receive; copy a,b; flush a,b; send ack",
     on(kDmp, true), kReordered},
    {"visible in order is not durable in order", "requester: write a; write b; flush; completion",
     on(kDmp, false), kReordered},
    {"a WRITE overtakes the FLUSH before it",
     "requester: write a; flush; write b; flush; completion", on(kDmp, false), kReordered},
    {"an ATOMIC WRITE without the FLUSH", "requester: write a; atomic-write b; flush; completion",
     on(kDmp, false), kReordered},
    {"a fence without anything non-posted before it",
     "requester: write a; fenced write b; flush; completion", on(kDmp, false), kReordered},
    {"relaxed ordering", "requester: relaxed write a; relaxed write b; flush; completion",
     on(kMhp, true), kReordered},
    {"the acknowledgment of a is not awaited",
     "requester: write-imm a; write-imm b; receive ack; receive ack\n"
     "responder: receive; flush a; send ack; receive; flush b; send ack",
     on(kDmp, true), kReordered},
};

TEST(WrongMethods, AreFoundWithATrace) {
  for (const Wrong& wrong : kWrong) {
    SCOPED_TRACE(wrong.why);
    const Method method = read_method(wrong.steps, "wrong");
    const Proof proof = prove(method, wrong.configuration);
    EXPECT_EQ(proof.correctness, Correctness::wrong);
    EXPECT_EQ(proof.breaches, wrong.breaches) << proof.trace;
    EXPECT_FALSE(proof.broken.empty());
    EXPECT_NE(proof.trace.find("the power fails"), std::string::npos);
    EXPECT_NE(proof.trace.find("recovery"), std::string::npos);
  }
}

TEST(WrongMethods, TheTraceReadsLikeThis) {
  const Method method =
      read_method("requester: write a; flush; write b; flush; completion", "wrong");
  EXPECT_EQ(prove(method, on(kDmp, false)).trace,
            "  requester    write a\n"
            "  requester    flush\n"
            "  requester    write b\n"
            "  -- the power fails --\n"
            "  recovery     a = 0   (perhaps no further than the device)\n"
            "  recovery     b = 1   (perhaps no further than the device)\n");
}

TEST(WrongMethods, ThatWaitForEverAreEndless) {
  const Proof proof =
      prove(read_method("requester: write a; receive ack", "endless"), on(kDmp, true));
  EXPECT_EQ(proof.correctness, Correctness::deadlock);
  EXPECT_EQ(proof.broken, "step 2 of the requester, \"receive ack\", waits for what never comes");
}

}  // namespace
}  // namespace perdura::methods
