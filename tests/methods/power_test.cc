// The responder's power fails at every moment of a few updates, by every method that is right on
// its configuration and has no step too many there, with FLUSH and with READ in its place; and is
// back at once. After recovery what was acknowledged is there, or was read by a reader of a link,
// "b" is not without "a", and the requester goes on.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <tuple>

#include "methods/proof.h"
#include "platform/base/error.h"
#include "platform/sim/failures.h"
#include "tests/methods/support.h"
#include "tests/support/explore.h"

namespace perdura::methods::test {
namespace {

using perdura::sim::Explored;
using perdura::sim::ExploreOptions;
using perdura::sim::Failure;
using perdura::sim::Images;
using perdura::sim::SimPlatform;
using perdura::test::explore_until_failure;

constexpr std::uint64_t kHistory = 7;  // more than there are receive buffers
constexpr std::uint32_t kReceiveBuffers = 4;

struct Progress {
  std::uint64_t acknowledged = 0;
  std::uint64_t begun = 0;
  std::uint64_t read = 0;  // the last link that a reader could rely on
};

// Makes updates until `last`, going on after what has been begun; false if the connection breaks.
Task<> make_updates(Thread& thread, const PersisterSetup* setup, Progress* progress,
                    std::uint64_t last, std::uint32_t session = 0) {
  std::unique_ptr<RemotePersister> persister;
  try {
    persister = co_await RemotePersister::connect(thread, {0, 0}, session, *setup);
  } catch (const PlatformError&) {
    co_return;  // the power failed while connecting
  }
  std::uint64_t link = 0;
  if (setup->method.update == Update::publish) {
    const auto found =
        co_await persister->read(History::kB, std::as_writable_bytes(std::span(&link, 1)));
    if (!found) co_return;
  }
  while (progress->begun < last) {
    ++progress->begun;
    const auto done = co_await History::update(*persister, progress->begun, link);
    if (!done) {
      EXPECT_EQ(done.error(), UpdateError::disconnected);
      co_return;
    }
    link = progress->acknowledged = progress->begun;
  }
}

// Reads the link until it is told to stop.
Task<> read_links(Thread& thread, const PersisterSetup* setup, Progress* progress,
                  const bool* stop) {
  std::unique_ptr<RemotePersister> reader;
  try {
    reader = co_await RemotePersister::connect(thread, {0, 0}, 1, *setup, Role::reader);
  } catch (const PlatformError&) {
    co_return;  // the power failed while connecting
  }
  while (!*stop) {
    const auto link = co_await reader->read_link(History::kB);
    if (!link && link.error() == UpdateError::disconnected) co_return;
    if (link) progress->read = *link;
  }
}

struct Trial {
  Method method;
  Configuration configuration;
  std::uint32_t receive_buffers = kReceiveBuffers;
  std::uint64_t history = kHistory;
  bool right = true;  // the method is, on this configuration
  // The responder's process dies first. Its successor replays messages that are visible and may not
  // be durable, and the power fails while it does so, or soon after.
  bool dies_first = false;
};

struct Counts {
  std::uint64_t replayed = 0;  // messages
  std::uint64_t wrong = 0;     // failures after which something was wrong
  std::uint64_t read = 0;      // failures after a link had been read
};

Explored fail_everywhere(const Trial& trial, const ExploreOptions& options, Counts* counts) {
  const Method& method = trial.method;
  const bool publishes = method.update == Update::publish;
  PersisterSetup setup =
      setup_of(method, trial.configuration.receive_buffers, trial.receive_buffers);
  // The last client has one of its own: the server may not have heard yet that others are gone.
  const std::uint32_t last_session = publishes ? 2 : 1;
  setup.sessions = last_session + 1;
  std::int64_t failures = 0;
  return explore_until_failure(options, [&](Failure& failure) {
    SCOPED_TRACE(failure.text());
    SimPlatform platform(full_profile(trial.configuration.model.ddio), 4);
    platform.track_durability(trial.configuration.model);
    Progress progress;
    bool checked = false;
    bool ended = false;
    bool stop_reading = false;  // after a failure nobody reads, and simulated time passes quickly
    bool reader_ended = !publishes;

    auto serve = [&](Thread& thread) -> Task<> {
      const auto region = open_or_create(thread.node, "pool", History::kRegion);
      co_await std::make_shared<Responder>(thread, *region, setup)->serve();
    };
    auto serve_again = [&](Thread& thread) -> Task<> {
      const auto region = open_or_create(thread.node, "pool", History::kRegion);
      const auto responder = std::make_shared<Responder>(thread, *region, setup);
      counts->replayed += responder->replayed();
      if (progress.read > 0) ++counts->read;
      const auto verdict = holds(without_mark_of(method, contents(*region)),
                                 std::max(progress.acknowledged, progress.read), progress.begun,
                                 method.update != Update::single);
      if (trial.right) {
        EXPECT_TRUE(verdict);
      }
      if (!verdict) ++counts->wrong;
      checked = true;
      co_await responder->serve();
    };
    platform.start_service(0, 0, CompletionMode::polling, serve);
    platform.start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      co_await make_updates(thread, &setup, &progress, trial.history);
      ended = stop_reading = true;
    });
    if (publishes) {
      platform.start(3, 3, CompletionMode::polling, [&](Thread& thread) -> Task<> {
        co_await read_links(thread, &setup, &progress, &stop_reading);
        reader_ended = true;
      });
    }
    failure.watch(platform, [&](pmem::Choices& choices) {
      stop_reading = true;
      const auto fail_power = [&] {
        platform.fail_power(0, choices);
        platform.start_service(0, 0, CompletionMode::polling, serve_again);
      };
      if (trial.dies_first) {
        constexpr std::int64_t kReplay = 4'000'000;  // of all messages takes less, in picoseconds
        constexpr Picoseconds kRestart = Microseconds(100);  // the devices are done by then
        const Time restart = platform.engine().now() + kRestart;
        platform.kill(0);
        platform.at(restart, [&] { platform.start_service(0, 0, CompletionMode::polling, serve); });
        platform.at(restart + Picoseconds(failures++ * 37'117 % kReplay), fail_power);
      } else {
        fail_power();
      }
      platform.start(2, 2, CompletionMode::polling, [&](Thread& thread) -> Task<> {
        while (!checked || !ended || !reader_ended) co_await sleep_for(Microseconds(10));
        // All that came before is replaced, whatever became of it.
        Progress rest{.begun = trial.history};
        co_await make_updates(thread, &setup, &rest, 2 * trial.history, last_session);
        EXPECT_EQ(rest.acknowledged, 2 * trial.history);
      });
    });
    platform.run();
    EXPECT_EQ(checked, failure.happened());
  });
}

// Also where not every step is needed a method may run, but there its steps are not put to the
// test.
bool is_tested_on(const Configuration& configuration, const Method& method) {
  return prove(method, configuration, {.to_the_end = false}).correctness == Correctness::right &&
         !is_wasteful(method, configuration);
}

using ConfigurationAndUpdate = std::tuple<Configuration, Update>;
class PowerOfTheResponder : public testing::TestWithParam<ConfigurationAndUpdate> {};
std::string power_case_name(const testing::TestParamInfo<ConfigurationAndUpdate>& info) {
  const auto& [configuration, update] = info.param;
  std::string name = to_string(configuration) + "_" + std::string(to_string(update));
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ' ' || c == '-'; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Table1, PowerOfTheResponder,
                         testing::Combine(testing::ValuesIn(configurations()),
                                          testing::ValuesIn(methods::kUpdates)),
                         power_case_name);

TEST_P(PowerOfTheResponder, FailsAnywhere) {
  const auto& [configuration, update] = GetParam();
  std::uint64_t moments = 0;
  std::uint64_t runs = 0;
  std::vector<std::string> tested;
  for (const Method& known : methods()) {
    if (known.update != update) continue;
    for (const Method& method : with_flush_and_read(known)) {
      if (!is_tested_on(configuration, method)) continue;
      std::vector<Trial> trials{{.method = method, .configuration = configuration}};
      if (is_applied_later(method)) {
        // A responder that makes several messages durable at once, of which all but the last are
        // acknowledged.
        trials.push_back({.method = method,
                          .configuration = configuration,
                          .receive_buffers = 2 * kReceiveBuffers,
                          .history = 2 * kReceiveBuffers + 1});
        trials.push_back({.method = method, .configuration = configuration, .dies_first = true});
      }
      for (const Trial& trial : trials) {
        SCOPED_TRACE(name_in_results(known, method.uses(pmem::StepKind::read)));
        Counts counts;
        Explored explored;
        for (ExploreOptions options :
             {ExploreOptions{.images = Images::least}, ExploreOptions{.images = Images::most},
              ExploreOptions{.images = Images::random, .seed = 1},
              ExploreOptions{.images = Images::random, .seed = 2}}) {
          options.before = &explored;
          explored = fail_everywhere(trial, options, &counts);
          moments += explored.crash_points;
          runs += explored.runs;
          if (HasFailure()) return;
        }
        EXPECT_EQ(counts.replayed > 0, is_applied_later(method));
        EXPECT_EQ(counts.read > 0, update == Update::publish);
      }
      tested.push_back(method.name);
    }
  }
  std::cout << to_string(configuration) << ": " << runs << " failures at " << moments
            << " moments, of " << fmt::format("{}", fmt::join(tested, ", ")) << "\n";
  EXPECT_GT(moments, 100U * tested.size());
  EXPECT_GE(tested.size(), 2U);
}

// No method runs untested.
TEST(PowerOfTheResponderByMethod, IsTestedSomewhereForEach) {
  const std::vector<Configuration> all = configurations();
  for (const Method& known : methods()) {
    for (const Method& method : with_flush_and_read(known)) {
      const bool somewhere = std::any_of(
          all.begin(), all.end(),
          [&](const Configuration& configuration) { return is_tested_on(configuration, method); });
      EXPECT_TRUE(somewhere) << method.name;
    }
  }
}

// The test is able to fail: a method that is wrong here loses what it had acknowledged.
TEST(PowerOfTheResponderWithAWrongMethod, LosesUpdates) {
  const Configuration configuration{{pmem::PersistenceDomain::dmp, true}, pmem::Medium::pm};
  for (const char* name : {"write-flush", "write-imm-flush", "send-copy", "send-flush",
                           "ordered-write-flush", "ordered-write-imm-flush", "ordered-send-flush",
                           "publish-cas-flush", "link-and-persist-flush", "mark-and-wait-atomic"}) {
    Counts counts;
    fail_everywhere({.method = find_method(name),
                     .configuration = configuration,
                     .receive_buffers = 4 * kReceiveBuffers,
                     .right = false},
                    {.images = Images::least}, &counts);
    EXPECT_GT(counts.wrong, 0U) << name;
  }
}

}  // namespace
}  // namespace perdura::methods::test
