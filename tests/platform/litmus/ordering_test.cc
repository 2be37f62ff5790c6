// The timed simulation, the one in every order, and the persistence model keep the order of
// platform/fabric/order/ordering.h, for every pair of kinds, fenced and not.
#include "platform/fabric/order/ordering.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "platform/litmus/explore.h"
#include "platform/litmus/litmus.h"
#include "platform/pmem/model/persistence_state.h"
#include "platform/sim/sim_platform.h"
#include "tests/support/platforms.h"

namespace perdura::fabric {
namespace {

using pmem::PersistenceState;
using pmem::RemoteKind;

std::string_view name_of(WorkKind kind) {
  switch (kind) {
    case WorkKind::posted:
      return "posted";
    case WorkKind::read:
      return "read";
    case WorkKind::atomic:
      return "atomic";
    case WorkKind::flush:
      break;
  }
  return "flush";
}

// Two requests of one connection, and whether the later one is fenced.
struct Pair {
  WorkKind earlier;
  WorkKind later;
  bool fenced;
};

void PrintTo(const Pair& pair, std::ostream* out) {
  *out << name_of(pair.later) << (pair.fenced ? ", fenced," : "") << " behind "
       << name_of(pair.earlier);
}

std::vector<Pair> pairs() {
  std::vector<Pair> all;
  for (const WorkKind earlier : kWorkKinds) {
    for (const WorkKind later : kWorkKinds) {
      for (const bool fenced : {false, true}) all.push_back({earlier, later, fenced});
    }
  }
  return all;
}

// --- the table itself ----------------------------------------------------------------------------

// Table 79 of the InfiniBand specification, typed in again from there: SENDs and WRITEs, READs and
// atomics. Our table deviates only where an atomic is behind another.
TEST(Ordering, IsTable79ButForAtomicsBehindAtomics) {
  constexpr std::string_view kTable79[] = {"###", "F#F", "F#F"};
  constexpr WorkKind kKinds[] = {WorkKind::posted, WorkKind::read, WorkKind::atomic};
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 3; ++column) {
      const bool both_atomic = row == 2 && column == 2;
      const bool kept = kTable79[row][column] == '#' || both_atomic;
      EXPECT_EQ(order_of(kKinds[row], kKinds[column]) == Order::kept, kept)
          << name_of(kKinds[column]) << " behind " << name_of(kKinds[row]);
    }
  }
}

TEST(Ordering, LetsAFlushBeOvertakenLikeAnAtomic) {
  for (const WorkKind kind : kWorkKinds) {
    EXPECT_EQ(order_of(WorkKind::flush, kind), order_of(WorkKind::atomic, kind)) << name_of(kind);
    EXPECT_EQ(order_of(kind, WorkKind::flush), order_of(kind, WorkKind::atomic)) << name_of(kind);
  }
}

TEST(Ordering, OfFencedRequestsIsThatOfPosting) {
  for (const Pair& pair : pairs()) {
    EXPECT_FALSE(pair.fenced && may_overtake(pair.later, pair.earlier, true))
        << testing::PrintToString(pair);
  }
}

class EveryPair : public testing::TestWithParam<Pair> {
 protected:
  bool may_overtake() const {
    return fabric::may_overtake(GetParam().later, GetParam().earlier, GetParam().fenced);
  }
};

// --- the persistence model -----------------------------------------------------------------------

std::vector<RemoteKind> kinds_in_model(WorkKind kind) {
  switch (kind) {
    case WorkKind::posted:
      return {RemoteKind::posted};
    case WorkKind::read:
      return {RemoteKind::read};
    case WorkKind::atomic:
      return {RemoteKind::atomic};
    case WorkKind::flush:
      break;
  }
  return {RemoteKind::flush, RemoteKind::flush_persistence};
}

TEST_P(EveryPair, HasItsOrderInThePersistenceModel) {
  for (const RemoteKind earlier : kinds_in_model(GetParam().earlier)) {
    for (const RemoteKind later : kinds_in_model(GetParam().later)) {
      PersistenceState state({});
      const auto connection = state.connect();
      const auto first = state.post(connection, earlier);
      const auto second = state.post(connection, later, {.fenced = GetParam().fenced});
      EXPECT_EQ(!state.takes_effect_before(first, second), may_overtake());
      EXPECT_FALSE(state.takes_effect_before(second, first));
    }
  }
}

// A fence holds for all requests behind it.
TEST_P(EveryPair, HasTheOrderOfAFenceBetweenThemInThePersistenceModel) {
  for (const WorkKind between : kWorkKinds) {
    PersistenceState state({});
    const auto connection = state.connect();
    const auto first = state.post(connection, kinds_in_model(GetParam().earlier).front());
    state.post(connection, kinds_in_model(between).front(), {.fenced = GetParam().fenced});
    const auto third = state.post(connection, kinds_in_model(GetParam().later).front());
    EXPECT_EQ(!state.takes_effect_before(first, third), may_overtake()) << name_of(between);
  }
}

// --- the simulations -----------------------------------------------------------------------------

// A program in which node 0 posts the pair, and its result if the later request has taken effect
// and the earlier one has not. A READ shows what it found in memory; other requests change memory,
// and a thread of node 1 looks for their changes, or makes one for READs to find.
struct Shown {
  std::string programs;
  std::string result;
};

std::string change_of(WorkKind kind, std::string_view place) {
  return kind == WorkKind::atomic ? fmt::format("atomic-write {} 1", place)
                                  : fmt::format("write {} x", place);
}

Shown show(const Pair& pair) {
  const std::string fenced = pair.fenced ? "fenced " : "";
  if (pair.later == WorkKind::flush) {
    return {
        fmt::format("node 0: write z x; {}flush z; wait; read p z via 2; wait; a = p\n", fenced),
        "a=0"};
  }
  if (pair.earlier == WorkKind::read && pair.later == WorkKind::read) {
    return {fmt::format("node 0: read p z; {}read q w; wait; a = p; b = q\n"
                        "node 1: w = 1; z = 1\n",
                        fenced),
            "a=1 b=0"};
  }
  if (pair.earlier == WorkKind::read) {
    return {
        fmt::format("node 0: read p z; {}{}; wait; a = p\n", fenced, change_of(pair.later, "z")),
        "a=1"};
  }
  if (pair.later == WorkKind::read) {
    return {
        fmt::format("node 0: {}; {}read p z; wait; a = p\n", change_of(pair.earlier, "z"), fenced),
        "a=0"};
  }
  return {fmt::format("node 0: {}; {}{}\n"
                      "node 1: b = w; a = z\n",
                      change_of(pair.earlier, "z"), fenced, change_of(pair.later, "w")),
          "a=0 b=1"};
}

// A FLUSH changes nothing and returns nothing: its completion shows that it has waited for WRITEs,
// and the rest of its order shows only in the persistence model.
bool shows(const Pair& pair) {
  return pair.earlier != WorkKind::flush &&
         (pair.later != WorkKind::flush || pair.earlier == WorkKind::posted);
}

litmus::Litmus litmus_of(const Pair& pair) {
  const Shown shown = show(pair);
  const std::string text = fmt::format(
      "litmus: a pair\nsource: ordering.h\nmemory: x@0=1 p@0 q@0 z@1 w@1\n{}{}: {}\n",
      shown.programs, may_overtake(pair.later, pair.earlier, pair.fenced) ? "allowed" : "forbidden",
      shown.result);
  return litmus::parse(text, "ordering").front();
}

sim::Profile testbed() {
  sim::Profile profile = test::erda_testbed();
  profile.nic.flush = profile.nic.atomic_write = true;
  return profile;
}

bool is_among(const litmus::Litmus& litmus, const litmus::Results& results) {
  return std::any_of(results.begin(), results.end(), [&](const auto& entry) {
    return matches(litmus.outcomes.front(), entry.first);
  });
}

template <class Predicate>
std::vector<Pair> pairs_that(const Predicate& predicate) {
  std::vector<Pair> all = pairs();
  std::erase_if(all, [&](const Pair& pair) { return !shows(pair) || !predicate(pair); });
  return all;
}

class EveryPairThatShows : public EveryPair {};

TEST_P(EveryPairThatShows, HasItsOrderInEveryOrder) {
  const litmus::Litmus litmus = litmus_of(GetParam());
  EXPECT_EQ(is_among(litmus, litmus::explore(litmus, testbed()).results), may_overtake());
}

class EveryPairInOrder : public EveryPair {};

TEST_P(EveryPairInOrder, KeepsItWithTimes) {
  const litmus::Litmus litmus = litmus_of(GetParam());
  sim::SimPlatform platform(testbed(), litmus.nodes);
  litmus::RunOptions options;
  options.times = 1000;
  options.longest_pause = Microseconds(4);
  EXPECT_FALSE(is_among(litmus, litmus::Run(litmus, platform, options).finish()));
}

std::string test_name(const testing::TestParamInfo<Pair>& info) {
  return fmt::format("{}{}_behind_{}", info.param.fenced ? "fenced_" : "",
                     name_of(info.param.later), name_of(info.param.earlier));
}

INSTANTIATE_TEST_SUITE_P(Ordering, EveryPair, testing::ValuesIn(pairs()), test_name);
INSTANTIATE_TEST_SUITE_P(Ordering, EveryPairThatShows,
                         testing::ValuesIn(pairs_that([](const Pair&) { return true; })),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Ordering, EveryPairInOrder,
                         testing::ValuesIn(pairs_that([](const Pair& pair) {
                           return !may_overtake(pair.later, pair.earlier, pair.fenced);
                         })),
                         test_name);

}  // namespace
}  // namespace perdura::fabric
