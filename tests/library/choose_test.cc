// The chooser as programs outside the suite see it.
#include <gtest/gtest.h>

#include "perdura.h"

namespace perdura {
namespace {

TEST(LibraryChoose, GivesStepsAndReasons) {
  const auto choices = choose({.domain = Domain::dmp,
                               .ddio = false,
                               .receive_buffers_in_pm = false,
                               .transport = Transport::roce},
                              {.ordered = true});
  ASSERT_FALSE(choices.empty());
  EXPECT_EQ(choices.front().method, "ordered-write-atomic");
  ASSERT_EQ(choices.front().steps.size(), 5U);
  EXPECT_EQ(choices.front().steps[1].agent, "requester");
  EXPECT_EQ(choices.front().steps[1].text, "flush");
  EXPECT_EQ(choices.front().steps[1].reason,
            "pushes everything before it out of the device; without it: out of order");
}

TEST(LibraryChoose, WhatIsNotKnownMustBeSafeEitherWay) {
  for (const Choice& choice :
       choose({.domain = Domain::dmp, .transport = Transport::infiniband}, {})) {
    EXPECT_EQ(choice.steps.back().agent, "responder") << choice.method;
  }
}

TEST(LibraryChoose, RefusesWithTheReason) {
  const Configuration ddio{.domain = Domain::dmp, .ddio = true, .transport = Transport::infiniband};
  try {
    choose(ddio, {.responder_cpu = false});
    FAIL() << "nothing one-sided is safe there";
  } catch (const Refused& refused) {
    EXPECT_EQ(std::string(refused.what()).find("under DMP with DDIO messages end in the cache"),
              0U);
  }
}

}  // namespace
}  // namespace perdura
