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
  EXPECT_EQ(
      choices.front().steps[1].reason,
      "pushes everything before it out of the device; without it, updates may be out of order");
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

// What a responder said of itself decides, and nothing of this machine.
TEST(LibraryChoose, ForAResponderElsewhere) {
  const Responder said{.host = "node7",
                       .device = "mlx5_0",
                       .configuration = {.domain = Domain::dmp,
                                         .ddio = false,
                                         .receive_buffers_in_pm = false,
                                         .transport = Transport::infiniband,
                                         .flush = true,
                                         .atomic_write = true}};
  const Responder responder = responder_from_json(to_json(said));
  EXPECT_EQ(responder.host, "node7");
  EXPECT_EQ(responder.device, "mlx5_0");
  const Update ordered{.ordered = true};
  EXPECT_TRUE(offers(choose(responder, ordered, {.flush = true, .atomic_write = true}),
                     "ordered-write-atomic"));
  EXPECT_FALSE(offers(choose(responder, ordered, {.flush = true}), "ordered-write-atomic"))
      << "both devices must have it";
  EXPECT_EQ(choose(responder, {}, {.flush = true}).front().steps[1].action,
            Action::flush_visibility);
  EXPECT_EQ(choose(responder, {}, {}).front().steps[1].action, Action::read);
}

TEST(LibraryChoose, ForAResponderOfWhichLittleIsKnown) {
  Responder responder;
  const auto careful = choose(responder, {}, {.flush = true});
  for (const Choice& choice : careful) {
    EXPECT_EQ(choice.steps.back().of, Agent::responder) << choice.method;
  }
  // It may be iWARP, where a completion says little, and its buffers may be anywhere.
  responder.configuration.domain = Domain::wsp;
  EXPECT_FALSE(offers(choose(responder, {}, {.flush = true}), "write"));
  responder.configuration.transport = Transport::roce;
  EXPECT_TRUE(offers(choose(responder, {}, {.flush = true}), "write"));
  EXPECT_FALSE(offers(choose(responder, {}, {.flush = true}), "send"));
  responder.configuration.receive_buffers_in_pm = true;
  EXPECT_TRUE(offers(choose(responder, {}, {.flush = true}), "send"));
}

TEST(LibraryChoose, DescribesThisMachine) {
  const Responder here = responder_from_json(to_json(this_responder()));
  EXPECT_FALSE(here.host.empty());
  EXPECT_THROW(responder_from_json("{}"), std::invalid_argument);
  EXPECT_THROW(features_of_device("no such device"), std::invalid_argument);
}

TEST(LibraryChoose, StepsAreData) {
  const Configuration ddio{.domain = Domain::dmp,
                           .ddio = true,
                           .receive_buffers_in_pm = false,
                           .transport = Transport::infiniband};
  for (const Choice& choice : choose(ddio, {.ordered = true})) {
    if (choice.method != "ordered-write-message") continue;
    std::vector<Action> actions;
    for (const Step& step : choice.steps) actions.push_back(step.action);
    EXPECT_EQ(actions,
              (std::vector{Action::write, Action::send_names, Action::receive_ack, Action::write,
                           Action::send_names, Action::receive_ack, Action::receive, Action::flush,
                           Action::send_ack, Action::receive, Action::flush, Action::send_ack}));
    EXPECT_TRUE(choice.steps[0].first && !choice.steps[0].second);
    EXPECT_TRUE(choice.steps[3].second && !choice.steps[3].first);
    EXPECT_EQ(choice.steps[5].of, Agent::requester);
    EXPECT_EQ(choice.steps[6].of, Agent::responder);
    return;
  }
  FAIL() << "ordered-write-message is right there";
}

}  // namespace
}  // namespace perdura
