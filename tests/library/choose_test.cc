// The chooser as programs outside the suite see it.
#include <gtest/gtest.h>

#include <algorithm>

#include "perdura.h"

namespace perdura {
namespace {

TEST(LibraryChoose, GivesStepsAndReasons) {
  const auto choices = choose({.domain = Domain::dmp,
                               .ddio = false,
                               .receive_buffers_in_pm = false,
                               .transport = Transport::roce,
                               .flush = true,
                               .atomic_write = true},
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

bool offers(const std::vector<Choice>& choices, const std::string& method) {
  return std::any_of(choices.begin(), choices.end(),
                     [&](const Choice& choice) { return choice.method == method; });
}

TEST(LibraryChoose, MindsWhatIsSaidOfTheDevices) {
  Configuration configuration{.domain = Domain::dmp,
                              .ddio = false,
                              .transport = Transport::infiniband,
                              .flush = true,
                              .flush_persistence = true,
                              .atomic_write = true};
  const Update ordered{.ordered = true};
  EXPECT_TRUE(offers(choose(configuration, ordered), "ordered-write-atomic"));
  EXPECT_TRUE(offers(choose(configuration, {}), "write-persist"));
  EXPECT_EQ(choose(configuration, {}).front().steps[1].text, "flush");
  configuration.atomic_write = false;
  EXPECT_FALSE(offers(choose(configuration, ordered), "ordered-write-atomic"));
  configuration.flush_persistence = false;
  EXPECT_FALSE(offers(choose(configuration, {}), "write-persist"));
  configuration.flush = false;
  EXPECT_EQ(choose(configuration, {}).front().steps[1].text, "read");
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
