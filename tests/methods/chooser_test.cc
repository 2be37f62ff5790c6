// The chooser never chooses what is not proven right, and refuses with a reason.
#include "methods/chooser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "methods/matrices.h"
#include "tests/methods/configurations.h"

namespace perdura::methods {
namespace {

using pmem::Medium;
using pmem::Transport;

std::vector<std::string> names(const Advice& advice) {
  std::vector<std::string> result;
  for (const Choice& choice : advice.choices) result.push_back(choice.method.name);
  return result;
}
std::string first(const std::vector<Configuration>& configurations, const UpdateNeeds& needs,
                  const DeviceFeatures& features = {}) {
  const Advice advice = advise(configurations, needs, features);
  return advice.choices.empty() ? "" : advice.choices.front().method.name;
}

TEST(Chooser, ChoosesOnlyWhatIsRightAndAllOfIt) {
  for (const Configuration& configuration : matrix_configurations()) {
    for (const Update update : kUpdatesOfPaper) {
      const DeviceFeatures all{.flush_persistence = true};
      const Advice advice = advise({configuration}, {.update = update}, all);
      for (const Method& method : methods()) {
        if (method.update != update) continue;
        const auto chosen = names(advice);
        EXPECT_EQ(std::count(chosen.begin(), chosen.end(), method.name),
                  prove(method, configuration).correctness == Correctness::right ? 1 : 0)
            << method.name << " on " << to_string(configuration);
      }
    }
  }
}

// Of what is left open, every possibility counts, whichever comes first.
TEST(Chooser, ChoosesOnlyWhatIsRightOnEachOfSeveralConfigurations) {
  const auto all = matrix_configurations();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Configuration& one = all[i];
    const Configuration& other = all[(i + all.size() / 2 - 1) % all.size()];
    for (const Update update : kUpdates) {
      const auto chosen = names(advise({one, other}, {.update = update}, {}));
      for (const Method& method : methods()) {
        if (std::count(chosen.begin(), chosen.end(), method.name) == 0) continue;
        for (const Configuration& configuration : {one, other}) {
          EXPECT_EQ(prove(method, configuration).correctness, Correctness::right)
              << method.name << " on " << to_string(configuration);
        }
      }
    }
  }
}

// With only their carrier allowed, the method of the paper is found for each cell.
TEST(Chooser, FindsTheMethodsOfThePaper) {
  for (const Configuration& configuration : matrix_configurations()) {
    for (const Update update : kUpdatesOfPaper) {
      for (const Carrier carrier : kCarriers) {
        const auto found =
            names(advise({configuration}, {.update = update, .carrier = carrier}, {}));
        const Method& method = method_of_paper(configuration, update, carrier);
        EXPECT_TRUE(std::count(found.begin(), found.end(), method.name)) << method.name;
      }
    }
  }
}

TEST(Chooser, PrefersFewRoundTripsAndTheRequesterAlone) {
  EXPECT_EQ(first({on(kWsp, true)}, {}), "write");
  EXPECT_EQ(first({on(kMhp, true)}, {}), "write-flush");
  EXPECT_EQ(first({on(kDmp, false)}, {.update = Update::ordered}), "ordered-write-atomic");
  EXPECT_EQ(first({on(kDmp, true)}, {.update = Update::ordered}), "ordered-send-copy-flush");
}

CostOf costs_of(std::string_view fast, Picoseconds of_fast, Picoseconds of_others) {
  return [=](const Method& method) -> std::optional<Picoseconds> {
    return method.name == fast ? of_fast : of_others;
  };
}

TEST(Chooser, MeasuredCostsDecide) {
  const auto cost = costs_of("send-copy", Microseconds(1), Microseconds(2));
  EXPECT_EQ(advise({on(kMhp, true)}, {}, {}, cost).choices.front().method.name, "send-copy");
}

TEST(Chooser, NeverPrefersWhatHasStepsThatAreNotNeeded) {
  const auto cost = costs_of("send-copy-flush", Microseconds(1), Microseconds(2));
  const Advice on_mhp = advise({on(kMhp, true)}, {}, {}, cost);
  EXPECT_NE(on_mhp.choices.front().method.name, "send-copy-flush");
  for (const Configuration& configuration : matrix_configurations()) {
    for (const Update update : kUpdatesOfPaper) {
      const Advice advice =
          advise({configuration}, {.update = update}, {.flush_persistence = true},
                 [](const Method& method) -> std::optional<Picoseconds> {
                   // The more steps, the faster.
                   return Microseconds(100) / static_cast<int>(method.requester().size());
                 });
      EXPECT_FALSE(advice.choices.front().wasteful)
          << advice.choices.front().method.name << " on " << to_string(configuration);
      EXPECT_TRUE(
          std::is_sorted(advice.choices.begin(), advice.choices.end(),
                         [](const Choice& a, const Choice& b) { return a.wasteful < b.wasteful; }));
    }
  }
}

// With any times, on any server: what is right and does less in less time stands before the rest.
TEST(Chooser, TheFirstNeverHasMoreStepsAndMoreTimeThanAnother) {
  const auto steps = [](const Choice& choice) {
    std::size_t count = 0;
    for (const auto& agent : choice.method.program.agents) count += agent.steps.size();
    return count;
  };
  for (const Configuration& configuration : matrix_configurations()) {
    for (const Update update : kUpdates) {
      for (std::uint64_t seed = 1; seed <= 2; ++seed) {
        // Times within the model's error of each other, and far beyond it.
        const auto cost = [seed](const Method& method) -> std::optional<Picoseconds> {
          const std::uint64_t drawn = std::hash<std::string>{}(method.name) * (2 * seed + 1) >> 7;
          return Microseconds(10) + Nanoseconds(static_cast<std::int64_t>(drawn % (seed * 500)));
        };
        const Advice advice = advise({configuration}, {.update = update}, {}, cost);
        if (advice.choices.empty()) continue;
        const Choice& first = advice.choices.front();
        for (const Choice& other : advice.choices) {
          EXPECT_FALSE(steps(other) < steps(first) && *other.expected < *first.expected)
              << first.method.name << " before " << other.method.name << " on "
              << to_string(configuration);
        }
      }
    }
  }
}

// Half a percent, as an 8-byte WRITE makes it that the model does not inline, is nobody's reason to
// take ATOMIC WRITE and a second FLUSH.
TEST(Chooser, WithinTheModelsErrorPrefersWhatNeedsTheLeast) {
  const auto best = [](const std::vector<Configuration>& configurations, const CostOf& cost) {
    return advise(configurations, {.update = Update::ordered}, {.flush_persistence = true}, cost)
        .choices.front()
        .method.name;
  };
  const Picoseconds slow = Microseconds(100);
  const auto faster_by = [&](int percent) { return slow - slow / 100 * percent; };
  for (const Configuration& configuration :
       {on(kMhp, true), on(kWsp, true, Medium::dram, Transport::iwarp)}) {
    EXPECT_EQ(best({configuration},
                   costs_of("ordered-write-atomic", faster_by(kModelErrorPercent / 2), slow)),
              "ordered-write-flush");
  }
  // By more than the error it counts.
  const std::vector<Configuration> dmp{on(kDmp, false)};
  EXPECT_EQ(best(dmp, costs_of("ordered-write-fence", faster_by(2 * kModelErrorPercent), slow)),
            "ordered-write-fence");
  EXPECT_EQ(best(dmp, costs_of("ordered-send-copy-flush", faster_by(1), slow)),
            "ordered-write-fence")
      << "leaves the responder's CPU alone, and needs no ATOMIC WRITE";
}

TEST(Chooser, WhatIsNotKnownMustBeSafeEitherWay) {
  // DDIO on or off: only what the responder's CPU flushes.
  const Advice advice = advise({on(kDmp, true), on(kDmp, false)}, {}, {});
  for (const Choice& choice : advice.choices) EXPECT_FALSE(choice.method.responder().empty());
  EXPECT_FALSE(advice.choices.empty());
}

TEST(Chooser, MindsWhatTheApplicationAndTheDevicesCanDo) {
  const Configuration pm = on(kMhp, true, Medium::pm);
  const UpdateNeeds sends{.carrier = Carrier::send};
  EXPECT_EQ(first({pm}, sends), "send-flush");
  EXPECT_EQ(first({pm}, {.carrier = Carrier::send, .replay = false}), "send-copy");
  EXPECT_EQ(first({on(kDmp, false)}, {.update = Update::ordered, .second_size = 24}),
            "ordered-send-copy-flush");
  EXPECT_EQ(first({on(kDmp, false)},
                  {.update = Update::ordered, .second_size = 24, .responder_cpu = false}),
            "ordered-write-fence");
  EXPECT_EQ(first({on(kDmp, true)}, {.responder_cpu = false}, {.flush_persistence = true}),
            "write-persist");
  const Advice advice = advise({on(kMhp, true)}, {}, {.flush = false});
  EXPECT_TRUE(advice.choices.front().method.uses(pmem::StepKind::read));
  EXPECT_FALSE(advice.choices.front().method.uses(pmem::StepKind::flush_visibility));
}

TEST(Chooser, GivesAReasonForEachStep) {
  const Advice advice = advise({on(kMhp, true)}, {}, {});
  const Choice& choice = advice.choices.front();
  ASSERT_EQ(choice.method.name, "write-flush");
  ASSERT_EQ(choice.reasons.size(), 3U);
  EXPECT_EQ(
      choice.reasons[1],
      "pushes everything before it out of the device; without it, updates may be torn or lost");
}

TEST(Chooser, RefusesWhatCannotBeSafe) {
  const UpdateNeeds one_sided_send{.carrier = Carrier::send, .responder_cpu = false};
  const std::vector<Configuration> dram{on(kDmp, false)};
  const Advice advice = advise(dram, one_sided_send, {});
  EXPECT_TRUE(advice.choices.empty());
  EXPECT_EQ(
      why_nothing(dram, one_sided_send, advice),
      "a SEND ends in a receive buffer in DRAM, or in one that recovery cannot replay, and is "
      "lost unless the responder's CPU copies it before it acknowledges; allow that, or place "
      "the buffers in persistent memory");
  const UpdateNeeds one_sided{.responder_cpu = false};
  const std::vector<Configuration> ddio{on(kDmp, true)};
  EXPECT_EQ(why_nothing(ddio, one_sided, advise(ddio, one_sided, {})),
            "under DMP with DDIO messages end in the cache, which loses its contents, and only the "
            "responder's CPU can flush them; allow that, turn DDIO off, or use devices with FLUSH "
            "for persistence");
}

}  // namespace
}  // namespace perdura::methods
