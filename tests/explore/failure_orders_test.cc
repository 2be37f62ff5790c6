// What a failure of one node leaves, such as a note of which copies were given up, may do harm only
// when other nodes have failed after it. So all orders in which nodes fail, one after the other or
// all at once, are tried with replicated memory: each node is away for a while, and applications
// are at work when it goes and when it comes back. Where copies are promoted after that, orders of
// promotions are tried, also of copies that have not heard of the primary before.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "explore/generated_run.h"
#include "systems/registry/registry.h"
#include "tests/explore/soak_support.h"

namespace perdura::explore::test {
namespace {

using services::GuaranteeLevel;

constexpr std::uint32_t kFailures = 4;

// What each failure leaves. If all that was stored survives, what is lost was given up or
// forgotten. If only what was made durable does, ranges begin and end within words, lines and
// slots, since their last bytes are what is easily left out.
struct World {
  std::string_view what;
  std::vector<std::uint64_t> lengths{};
  bool keeps_least = false;
};
const std::vector<World>& worlds() {
  static const std::vector<World> all{
      {.what = "all that was stored survives"},
      {.what = "only what is durable survives", .lengths = {1, 3, 0, 3, 5}, .keeps_least = true}};
  return all;
}
pmem::Tape tape_in(const World& world, pmem::Tape::Streams streams) {
  static pmem::MostChoices least;  // the simplest image, 0, is the one that keeps the most
  streams["lengths"] = world.lengths;
  return pmem::Tape(std::move(streams), [&world](std::string_view name) -> pmem::Choices* {
    return world.keeps_least && stream_of(name) == StreamOf::image ? &least : nullptr;
  });
}

// All of its choices that are not made here are the simplest ones.
pmem::Tape run_with(const World& world, const std::vector<PowerFailure>& failures) {
  pmem::Tape::Streams streams = power_failures(failures);
  streams.erase("drawn");
  for (const char* const client : {"client-0", "client-1"}) {
    std::vector<std::uint64_t>& choices = streams[client];
    // None follow the last failure: they would replace what is lost.
    for (std::size_t epoch = 0; epoch < failures.size(); ++epoch) {
      choices.insert(choices.end(), {4, 2});  // four sync points, with long pauses between them
    }
  }
  streams["patience"] = {2, 3};  // a node that does not answer is given up soon
  return tape_in(world, std::move(streams));
}

// One of the nodes, or all, at each failure, as the digits of `order` say. `text` lists them.
std::vector<PowerFailure> failures_in(std::uint32_t order, NodeId nodes, std::string& text) {
  const std::uint32_t kinds = nodes + 1;
  std::vector<PowerFailure> failures;
  for (std::uint32_t i = 0, rest = order; i < kFailures; ++i, rest /= kinds) {
    PowerFailure& failure = failures.emplace_back();
    // Applications are at work then, but wait for a copy that is away when they begin.
    const bool waits = i > 0 && failures[i - 1].stays_away && failures[i - 1].alone;
    failure.after = waits ? PowerFailure::kLatest : Picoseconds(Microseconds(100));
    if (rest % kinds < nodes) failure.alone = rest % kinds;
    // The primary has to have the time to give the others the region.
    failure.stays_away = failure.alone != NodeId{0};
    text += failure.alone ? fmt::format(" {}", *failure.alone) : " all";
  }
  return failures;
}

class FailureOrders : public testing::TestWithParam<std::string> {};

TEST_P(FailureOrders, LoseNothing) {
  const SoakCase one =
      case_of(GetParam(), "persistence = correct", "dmp ddio", GuaranteeLevel::durable);
  const NodeId nodes = 1 + systems::find_memory_system(GetParam()).copies.least;
  const std::uint32_t kinds = nodes + 1;  // one of them, or all
  std::uint32_t orders = 1;
  for (std::uint32_t i = 0; i < kFailures; ++i) orders *= kinds;
  std::uint64_t given_up = 0;
  for (std::uint32_t order = 0; order < orders; ++order) {
    std::string text;
    const std::vector<PowerFailure> failures = failures_in(order, nodes, text);
    for (const World& world : worlds()) {
      pmem::Tape tape = run_with(world, failures);
      const SoakRun run = run_once(one, soaked_testbed(), tape);
      ASSERT_EQ(run.failures, kFailures);
      ASSERT_EQ(run.loss, "") << world.what << "; these fail, one after the other:" << text << "\n"
                              << run.events << tape.text();
      given_up += run.happened.at("copies given up");
    }
  }
  EXPECT_GT(given_up, worlds().size() * orders / 4);
}

// Three times the power of all nodes fails. Each time a copy is promoted; the second time before
// anybody has mapped the region of the one that was promoted first.
class PromotionOrders : public testing::TestWithParam<std::string> {};

TEST_P(PromotionOrders, LoseNothing) {
  constexpr std::uint64_t kPromoted = 1;
  const SoakCase one =
      case_of(GetParam(), "persistence = correct", "dmp ddio", GuaranteeLevel::durable);
  // In the middle of a sync point: so long after one has begun, or ended.
  constexpr std::array<std::uint64_t, 4> kChanges{1, 3, 6, 9};
  constexpr std::array<Picoseconds, 4> kDelays{Microseconds(1), Microseconds(2), Microseconds(3),
                                               Microseconds(4)};
  // The copy is open, or already connecting.
  constexpr std::array<Picoseconds, 3> kNext{Microseconds(4), Microseconds(8), Microseconds(16)};
  std::uint64_t unheard = 0;
  std::uint64_t runs = 0;
  for (std::uint64_t order = 0; order < 8; ++order) {
    const std::vector<std::uint64_t> moves{kPromoted, 1 + order % 2, 1 + order / 2 % 2,
                                           1 + order / 4};
    for (const std::uint64_t change : kChanges) {
      for (const Picoseconds delay : kDelays) {
        for (const Picoseconds next : kNext) {
          pmem::Tape::Streams streams = power_failures(
              std::vector<PowerFailure>{{}, {.after = next}, {.after = PowerFailure::kLatest}});
          streams.erase("drawn");
          std::vector<std::uint64_t>& first = streams["failure-1"];
          first.resize(kTriggerOfFailure);
          first.insert(first.end(), {change, 0, static_cast<std::uint64_t>(delay.count())});
          streams["client-0"] = streams["client-1"] = {4, 0, 4, 0, 4, 0, 4, 0};
          streams["moves"] = moves;
          pmem::Tape tape(streams);
          const SoakRun run = run_once(one, soaked_testbed(), tape);
          ASSERT_EQ(run.loss, "") << run.events << tape.text();
          unheard += run.happened.at("promotions without having heard of the primary");
          ++runs;
        }
      }
    }
  }
  EXPECT_GT(unheard, runs / 16);
}

// One of three copies fails alone and is back at once, so it is not given up; then the power of all
// nodes fails, and another copy is promoted. With E-chain only a copy that has two others after it
// may have to give the region to the next one while the last one has all that was sent so far and
// still counts as complete. That takes one more copy than the fewest.
class ReturnOrders : public testing::TestWithParam<std::string> {};

TEST_P(ReturnOrders, LoseNothing) {
  constexpr std::uint64_t kMoreCopies = 1;
  constexpr std::uint64_t kPromoted = 1;
  constexpr NodeId kCopies = 3;
  const SoakCase one =
      case_of(GetParam(), "persistence = correct", "dmp ddio", GuaranteeLevel::durable);
  ASSERT_EQ(systems::find_memory_system(GetParam()).copies.least + 1, kCopies);
  // Of the copy alone, when sync points are on their way to the other copies: so many of them have
  // begun or ended, or nodes been opened, and so long ago.
  constexpr std::array<std::uint64_t, 2> kChanges{9, 11};
  constexpr std::array<Picoseconds, 6> kDelays{Microseconds(1), Microseconds(2), Microseconds(3),
                                               Microseconds(4), Microseconds(5), Microseconds(6)};
  // Of all, so long after that: while the region is given, and when it has been.
  constexpr std::array<Picoseconds, 4> kNext{Microseconds(10), Microseconds(20), Microseconds(30),
                                             Microseconds(40)};
  std::uint64_t promoted = 0;
  std::uint64_t runs = 0;
  for (NodeId alone = 1; alone <= kCopies; ++alone) {
    for (NodeId place = 1; place <= kCopies; ++place) {
      for (const std::uint64_t change : kChanges) {
        for (const Picoseconds delay : kDelays) {
          for (const Picoseconds next : kNext) {
            pmem::Tape::Streams streams =
                power_failures(std::vector<PowerFailure>{{.alone = alone}, {.after = next}});
            streams.erase("drawn");
            std::vector<std::uint64_t>& first = streams["failure-1"];
            first.resize(kTriggerOfFailure);
            first.insert(first.end(), {change, 0, static_cast<std::uint64_t>(delay.count())});
            streams["client-0"] = streams["client-1"] = {4, 0, 4, 0, 4, 0};
            streams["world"] = {0, kMoreCopies};
            streams["moves"] = {kPromoted, place};
            pmem::Tape tape(streams);
            const SoakRun run = run_once(one, soaked_testbed(), tape);
            ASSERT_EQ(run.loss, "") << run.events << tape.text();
            if (run.happened.at("sync points on a copy that was promoted") > 0) ++promoted;
            ++runs;
          }
        }
      }
    }
  }
  EXPECT_GT(promoted, runs / 4);
}

std::string name_of(const testing::TestParamInfo<std::string>& one) {
  std::string name(one.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, FailureOrders,
                         testing::Values("m-sync", "m-syncsec", "e-chain", "e-broadcast"), name_of);
INSTANTIATE_TEST_SUITE_P(All, PromotionOrders, testing::Values("e-chain", "e-broadcast"), name_of);
INSTANTIATE_TEST_SUITE_P(All, ReturnOrders, testing::Values("e-chain", "e-broadcast"), name_of);

}  // namespace
}  // namespace perdura::explore::test
