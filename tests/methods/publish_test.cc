// Methods that publish a block by a link: where they are right, that no step is too many, what
// becomes of readers that do less than their method asks for, and how they are chosen.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iostream>

#include "methods/chooser.h"
#include "platform/base/error.h"
#include "tests/methods/configurations.h"

namespace perdura::methods {
namespace {

using pmem::Medium;
using pmem::Transport;

// The configurations of Table 1 on both transports. The model has atomics on iWARP, too; the
// chooser knows that there are none.
std::vector<Configuration> all_configurations() {
  std::vector<Configuration> all = configurations();
  const auto iwarp = configurations(Transport::iwarp);
  all.insert(all.end(), iwarp.begin(), iwarp.end());
  return all;
}

bool is_dmp(const Configuration& on) { return on.model.domain == kDmp; }
bool loses_caches(const Configuration& on) { return is_dmp(on) && on.model.ddio; }
bool accepted_is_durable(const Configuration& on) {
  return on.model.domain == kWsp && on.model.transport == Transport::infiniband;
}

struct Expected {
  const char* method;
  // Where it is right, and where also each of its steps is needed.
  std::function<bool(const Configuration&)> right;
  std::function<bool(const Configuration&)> minimal;
};

const std::vector<Expected>& all_expected() {
  static const auto everywhere = [](const Configuration&) { return true; };
  static const auto visible_is_durable = [](const Configuration& on) { return !is_dmp(on); };
  static const auto keeps_what_is_pushed = [](const Configuration& on) {
    return !loses_caches(on);
  };
  static const auto must_push = [](const Configuration& on) {
    return is_dmp(on) && !on.model.ddio;
  };
  static const auto visible_only = [](const Configuration& on) {
    return !is_dmp(on) && !accepted_is_durable(on);
  };
  static const std::vector<Expected> expected{
      {"publish-cas", visible_is_durable, visible_is_durable},
      {"publish-cas-flush", keeps_what_is_pushed, must_push},
      {"publish-cas-message", everywhere, loses_caches},
      {"publish-cas-persist", everywhere, is_dmp},
      {"link-and-persist-flush", keeps_what_is_pushed, must_push},
      {"link-and-persist-message", everywhere, loses_caches},
      {"link-and-persist-persist", everywhere, is_dmp},
      {"publish-write", accepted_is_durable, accepted_is_durable},
      {"publish-write-flush", visible_is_durable, visible_only},
      {"publish-write-message", everywhere, loses_caches},
      {"publish-write-persist", everywhere, is_dmp},
      {"mark-and-wait-atomic", keeps_what_is_pushed, must_push},
      {"mark-and-wait-fence", keeps_what_is_pushed, must_push},
  };
  return expected;
}

std::vector<Method> with_flush_and_read(const Method& method) {
  std::vector<Method> variants{method};
  if (method.uses(pmem::StepKind::flush_visibility)) {
    variants.push_back(with_read_for_flush(method));
  }
  return variants;
}

TEST(Publishing, AllMethodsAreExpectedSomewhere) {
  std::vector<std::string> known;
  for (const Method& method : methods()) {
    if (method.update == Update::publish) known.push_back(method.name);
  }
  std::vector<std::string> expected;
  for (const Expected& each : all_expected()) expected.emplace_back(each.method);
  EXPECT_EQ(known, expected);
}

TEST(Publishing, IsRightWhereItShouldBeAndNowhereElse) {
  std::uint64_t instants = 0;
  std::uint64_t images = 0;
  for (const Expected& expected : all_expected()) {
    for (const Method& method : with_flush_and_read(find_method(expected.method))) {
      for (const Configuration& configuration : all_configurations()) {
        const Proof proof = prove(method, configuration);
        EXPECT_EQ(proof.correctness,
                  expected.right(configuration) ? Correctness::right : Correctness::wrong)
            << expected.method << " on " << to_string(configuration) << ": " << proof.broken << "\n"
            << proof.trace;
        EXPECT_FALSE(proof.too_many);
        instants += proof.instants;
        images += proof.images;
      }
    }
  }
  std::cout << instants << " moments, " << images << " images\n";
}

TEST(Publishing, NeedsEveryStep) {
  for (const Expected& expected : all_expected()) {
    int on = 0;
    for (const Method& method : with_flush_and_read(find_method(expected.method))) {
      for (const Configuration& configuration : all_configurations()) {
        if (!expected.minimal(configuration)) continue;
        ++on;
        for (const StepProof& proof : prove_steps(method, configuration)) {
          const auto& agent = method.program.agents[proof.agent];
          EXPECT_NE(proof.without.correctness, Correctness::right)
              << expected.method << " on " << to_string(configuration) << " without \""
              << to_string(method.program, agent.steps[proof.step]) << "\" of the "
              << methods::name_of(agent);
        }
      }
    }
    EXPECT_GT(on, 0) << expected.method;
  }
}

// --- readers that do less ------------------------------------------------------------------------

struct Careless {
  const char* why;
  const char* steps;
  Configuration configuration;
};

const Careless kCareless[] = {
    {"what is visible may be lost",
     "requester: write a; flush; cas b; flush; completion\n"
     "requester 2: await b",
     on(kDmp, false)},
    {"a FLUSH pushes only what its own connection has changed",
     "requester: write a; flush; cas b; flush; completion\n"
     "requester 2: await b; flush; completion",
     on(kDmp, false)},
    {"with DDIO it ends in the cache",
     "requester: write a; flush; cas b; flush; completion\n"
     "requester 2: await b; cas b; flush; completion",
     on(kDmp, true)},
    {"a mark is there to be heeded",
     "requester: write a; flush; cas b=1; flush; cas b=2; completion\n"
     "requester 2: await b=1",
     on(kDmp, false)},
    {"the writer removes the mark too early",
     "requester: write a; flush; cas b=1; cas b=2; flush; completion\n"
     "requester 2: await b=2",
     on(kDmp, false)},
    {"a reader removes the mark too early",
     "requester: write a; flush; cas b=1; flush; cas b=2; completion\n"
     "requester 2: await b=1; cas b=3; flush; completion",
     on(kDmp, false)},
    {"the responder acknowledges before it has flushed",
     "requester: write a; send &a; receive ack; cas b; fenced send &b; receive ack\n"
     "responder: receive; flush a; send ack; receive; flush b; send ack\n"
     "requester 2: await b; send &b; receive ack\n"
     "responder 2: receive; send ack; flush b",
     on(kDmp, true)},
};

TEST(Publishing, ReadersThatDoLessRelyOnWhatIsLost) {
  for (const Careless& careless : kCareless) {
    SCOPED_TRACE(careless.why);
    const Method method = read_method(careless.steps, "careless");
    EXPECT_EQ(method.update, Update::publish);
    const Proof proof = prove(method, careless.configuration);
    EXPECT_EQ(proof.correctness, Correctness::wrong);
    EXPECT_TRUE(proof.breaches.contains(Breach::lost_by_reader)) << summary(proof);
  }
}

TEST(Publishing, AnUnorderedLinkIsFoundWithoutItsBlock) {
  const Method method = read_method(
      "requester: write a; cas b; flush; completion\n"
      "requester 2: await b; cas b; flush; completion",
      "unordered");
  EXPECT_TRUE(prove(method, on(kDmp, false)).breaches.contains(Breach::out_of_order));
}

// A message may arrive before the atomic that was posted before it has taken effect.
TEST(Publishing, AMessageAboutACasMustBeFenced) {
  const Method method = read_method(
      "requester: write a; send &a; receive ack; cas b; send &b; receive ack\n"
      "responder: receive; flush a; send ack; receive; flush b; send ack\n"
      "requester 2: await b; send &b; receive ack\n"
      "responder 2: receive; flush b; send ack",
      "unfenced");
  EXPECT_TRUE(prove(method, on(kDmp, true)).breaches.contains(Breach::lost));
}

TEST(Publishing, TheTraceReadsLikeThis) {
  const Method method = read_method(kCareless[0].steps, "careless");
  const Proof proof = prove(method, on(kDmp, false), {.to_the_end = false});
  EXPECT_EQ(proof.broken, "a reader relies on what is lost");
  EXPECT_EQ(proof.trace,
            "  requester 1  write a\n"
            "  requester 1  flush\n"
            "  requester 1  cas b\n"
            "  requester 1  flush\n"
            "  requester 2  await b\n"
            "  -- the power fails --\n"
            "  recovery     a = 1\n"
            "  recovery     b = 0   (perhaps no further than the cache or the way to the "
            "controller)\n");
}

// --- what readers must do, and what devices must have
// ----------------------------------------------

TEST(Publishing, SaysWhatReadersMustDo) {
  const auto duty = [](const char* name) { return find_method(name).readers_duty(); };
  EXPECT_EQ(duty("publish-cas"), ReadersDuty::nothing);
  EXPECT_EQ(duty("publish-cas-message"), ReadersDuty::persist);
  EXPECT_EQ(duty("link-and-persist-flush"), ReadersDuty::help);
  EXPECT_EQ(duty("mark-and-wait-fence"), ReadersDuty::wait);
  EXPECT_TRUE(find_method("link-and-persist-message").needs().atomics);
  EXPECT_FALSE(find_method("publish-write-message").needs().atomics);
  EXPECT_TRUE(find_method("mark-and-wait-atomic").needs().atomic_write);
}

std::vector<std::string> chosen(const std::vector<Configuration>& configurations,
                                const UpdateNeeds& needs, const DeviceFeatures& features = {}) {
  std::vector<std::string> names;
  for (const Choice& choice : advise(configurations, needs, features).choices) {
    names.push_back(choice.method.name);
  }
  return names;
}

TEST(Publishing, ChoosesWhatIsRightAndAllOfIt) {
  for (const Configuration& configuration : configurations()) {
    for (const Link link : kLinks) {
      const auto names = chosen({configuration}, {.update = Update::publish, .link = link},
                                {.flush_persistence = true});
      for (const Expected& expected : all_expected()) {
        const bool right =
            find_method(expected.method).link() == link && expected.right(configuration);
        EXPECT_EQ(std::count(names.begin(), names.end(), expected.method), right ? 1 : 0)
            << expected.method << " on " << to_string(configuration);
      }
    }
  }
}

TEST(Publishing, PrefersMethodsThatSpareReaders) {
  const UpdateNeeds cas{.update = Update::publish};
  const UpdateNeeds write{.update = Update::publish, .link = Link::write};
  EXPECT_EQ(chosen({on(kDmp, false)}, cas).front(), "link-and-persist-flush");
  EXPECT_EQ(chosen({on(kDmp, true)}, cas).front(), "link-and-persist-message");
  EXPECT_EQ(chosen({on(kDmp, true)}, cas, {.flush_persistence = true}).front(),
            "link-and-persist-persist");
  EXPECT_EQ(chosen({on(kMhp, true)}, cas).front(), "publish-cas");
  EXPECT_EQ(chosen({on(kDmp, false)}, write).front(), "mark-and-wait-atomic");
  EXPECT_EQ(chosen({on(kDmp, false)}, write, {.atomic_write = false}).front(),
            "mark-and-wait-fence");
  EXPECT_EQ(chosen({on(kWsp, true)}, write).front(), "publish-write");
  EXPECT_EQ(chosen({on(kDmp, true), on(kDmp, false)}, cas).front(), "link-and-persist-message")
      << "what is not known must be safe either way";
  const Advice advice = advise({on(kDmp, false)}, cas, {.flush = false});
  EXPECT_TRUE(advice.choices.front().method.uses(pmem::StepKind::read));
}

TEST(Publishing, GivesReasonsForTheStepsOfReadersToo) {
  const Advice advice = advise({on(kDmp, false)}, {.update = Update::publish}, {});
  const Choice& choice = advice.choices.front();
  ASSERT_EQ(choice.method.name, "link-and-persist-flush");
  ASSERT_EQ(choice.reasons.size(), 11U);
  EXPECT_EQ(choice.reasons[5],
            "removes the mark, since the link is durable; without it, the update would never "
            "finish");
  EXPECT_EQ(choice.reasons[7],
            "changes the link to what it is, for the next step to push; without it, updates may be "
            "lost by a reader");
}

TEST(Publishing, RefusesCasOnIwarpAndWithoutAtomics) {
  const UpdateNeeds cas{.update = Update::publish};
  const std::vector<Configuration> iwarp{on(kMhp, true, Medium::dram, Transport::iwarp)};
  const Advice advice = advise(iwarp, cas, {});
  EXPECT_TRUE(advice.choices.empty());
  for (const Refusal& refusal : advice.refusals) {
    EXPECT_EQ(refusal.reason, "iWARP has no atomics");
  }
  EXPECT_EQ(why_nothing(iwarp, cas, advice),
            "iWARP has no atomics, and so no CAS; publish by WRITE, which serves one writer at a "
            "time, or use InfiniBand or RoCE (state the transport if it is one of them)");
  EXPECT_EQ(chosen(iwarp, {.update = Update::publish, .link = Link::write}).front(),
            "publish-write-flush");
  EXPECT_THROW(choose({on(kMhp, true)}, cas, {.atomics = false}), UsageError);
  EXPECT_THROW(choose({on(kMhp, true)}, {.update = Update::publish, .second_size = 16}, {}),
               UsageError);
}

}  // namespace
}  // namespace perdura::methods
