// The server's power fails at every moment of a few appends, by every method that is right on its
// configuration and has no step too many there, with FLUSH and with READ in its place: the tail is
// found, no acknowledged record is lost, and the client goes on.
#include <iostream>
#include <tuple>

#include "methods/proof.h"

#include "platform/base/error.h"
#include "platform/sim/failures.h"
#include "tests/bench/log/support.h"
#include "tests/support/explore.h"

namespace perdura::bench::test {
namespace {

using methods::Configuration;
using perdura::sim::Explored;
using perdura::sim::ExploreOptions;
using perdura::sim::Failure;
using perdura::sim::Images;
using perdura::sim::SimPlatform;
using perdura::test::explore_until_failure;

constexpr std::uint64_t kPowerRecords = 6;
constexpr std::uint64_t kSlots = 3;

// With FLUSH and all that comes with it.
perdura::sim::Profile testbed(const Configuration& configuration) {
  perdura::sim::Profile profile = perdura::test::erda_testbed();
  profile.ddio = configuration.model.ddio;
  profile.nic.flush = profile.nic.flush_persistence = profile.nic.atomic_write = true;
  return profile;
}

struct Progress {
  std::uint64_t acknowledged = 0;
  std::uint64_t begun = 0;
  std::uint64_t head = 0;  // up to which recovery has applied records
};

Task<> append_until(Thread& thread, const systems::remote_log::LogOptions* options,
                    Progress* progress, std::uint64_t last) {
  std::unique_ptr<systems::remote_log::RemoteLog> log;
  try {
    log = co_await systems::remote_log::RemoteLog::connect(thread, {0, 0}, *options);
  } catch (const PlatformError&) {
    co_return;  // the power failed while connecting
  }
  EXPECT_GE(log->tail(), progress->acknowledged);
  EXPECT_LE(log->tail(), progress->begun);
  EXPECT_GE(log->tail(), progress->head) << "a record would get the number of an applied one";
  while (log->tail() < last) {
    progress->begun = log->tail() + 1;
    const auto payload = payload_of(progress->begun);
    const auto appended = co_await log->append(payload);
    if (!appended) co_return;
    progress->acknowledged = *appended;
  }
}

Explored fail_everywhere(const systems::remote_log::LogOptions& options,
                         const Configuration& configuration, const ExploreOptions& exploration) {
  return explore_until_failure(exploration, [&](Failure& failure) {
    SCOPED_TRACE(failure.text());
    SimPlatform platform(testbed(configuration), 3);
    platform.track_durability(configuration.model);
    Progress progress;
    std::uint64_t applied = 0;
    bool recovered = false;
    bool ended = false;

    const auto apply = [&](std::uint64_t number, std::span<const std::byte> payload) {
      // A server that takes remains for records would apply them for ever.
      if (number > progress.begun) {
        throw PlatformError(fmt::format("record {} is applied, and was never appended", number));
      }
      // After a failure some may come again.
      EXPECT_LE(number, applied + 1);
      EXPECT_TRUE(is_payload_of(number, payload)) << number;
      applied = std::max(applied, number);
    };
    auto serve = [&](Thread& thread) -> Task<> {
      systems::remote_log::LogServer server(thread, "log", options, apply);
      if (failure.happened()) {
        EXPECT_LE(server.head(), applied);
        while (server.apply_some(1) == 1) {
        }
        EXPECT_GE(server.head(), progress.acknowledged);
        EXPECT_LE(server.head(), progress.begun);
        progress.head = server.head();
        recovered = true;
      }
      thread.executor.spawn(server.collect(Microseconds(2)));
      co_await server.serve();
    };
    platform.start_service(0, 0, CompletionMode::polling, serve);
    platform.start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      co_await append_until(thread, &options, &progress, kPowerRecords);
      ended = true;
    });
    failure.watch(platform, [&](pmem::Choices& choices) {
      platform.fail_power(0, choices);
      platform.start_service(0, 0, CompletionMode::polling, serve);
      platform.start(2, 2, CompletionMode::polling, [&](Thread& thread) -> Task<> {
        // With a log that is not usable, what follows would never end.
        const Time patience = thread.executor.now() + Milliseconds(10);
        const auto waits = [&](bool over) { return !over && thread.executor.now() < patience; };
        while (waits(recovered && ended)) co_await sleep_for(Microseconds(10));
        // The server may not know yet that the client before has gone.
        while (waits(progress.acknowledged == 2 * kPowerRecords)) {
          co_await append_until(thread, &options, &progress, 2 * kPowerRecords);
          co_await sleep_for(Microseconds(10));
        }
        while (waits(applied == 2 * kPowerRecords)) co_await sleep_for(Microseconds(10));
        EXPECT_EQ(applied, 2 * kPowerRecords) << "of " << progress.acknowledged << " acknowledged";
      });
    });
    platform.run();
    EXPECT_EQ(recovered, failure.happened());
  });
}

// The first client's connection breaks so long after it has begun to append its second record, and
// the power fails, leaving as little as it may, when the next client has appended one more.
void append_behind_a_lost_client(const systems::remote_log::LogOptions& options,
                                 const Configuration& configuration, Picoseconds after) {
  constexpr fabric::Address kServer{0, 0};
  constexpr fabric::Address kFirst{1, 1};
  SimPlatform platform(testbed(configuration), 3);
  platform.track_durability(configuration.model);
  std::uint64_t acknowledged = 0;
  bool gone = false;
  bool failed = false;
  bool recovered = false;
  const auto serve = [&](Thread& thread) -> Task<> {
    systems::remote_log::LogServer server(thread, "log", options,
                                          [](std::uint64_t, std::span<const std::byte>) {});
    if (failed) {
      while (server.apply_some(1) == 1) {
      }
      EXPECT_GE(server.head(), acknowledged);
      recovered = true;
    }
    co_await server.serve();
  };
  const auto append = [](systems::remote_log::RemoteLog& log, std::uint64_t number) -> Task<bool> {
    const auto payload = payload_of(number);
    const auto appended = co_await log.append(payload);
    co_return appended.has_value();
  };
  platform.start_service(kServer.node, kServer.port, CompletionMode::polling, serve);
  platform.start(kFirst.node, kFirst.port, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto log = co_await systems::remote_log::RemoteLog::connect(thread, kServer, options);
    const bool first = co_await append(*log, 1);
    EXPECT_TRUE(first);
    platform.at(thread.executor.now() + after, [&] {
      platform.break_connections(kFirst, kServer);
      gone = true;
    });
    co_await append(*log, 2);
  });
  platform.start(2, 2, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    while (!gone) co_await sleep_for(Microseconds(1));
    std::unique_ptr<systems::remote_log::RemoteLog> log;
    while (log == nullptr) {
      try {
        log = co_await systems::remote_log::RemoteLog::connect(thread, kServer, options);
      } catch (const methods::RefusedForNow&) {
      }
      if (log == nullptr) co_await sleep_for(Microseconds(1));
    }
    const bool next = co_await append(*log, log->tail() + 1);
    EXPECT_TRUE(next);
    acknowledged = log->tail();
    platform.at(thread.executor.now(), [&] {
      pmem::LeastChoices least;
      platform.fail_power(kServer.node, least);
      failed = true;
      platform.start_service(kServer.node, kServer.port, CompletionMode::polling, serve);
    });
    while (!recovered) co_await sleep_for(Microseconds(1));
  });
  platform.run();
}

using ConfigurationAndUpdate = std::tuple<Configuration, methods::Update>;
class PowerOfTheLogServer : public testing::TestWithParam<ConfigurationAndUpdate> {};
std::string power_case_name(const testing::TestParamInfo<ConfigurationAndUpdate>& info) {
  const auto& [configuration, update] = info.param;
  std::string name = to_string(configuration) + "_" + std::string(to_string(update));
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ' ' || c == '-'; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Table1, PowerOfTheLogServer,
                         testing::Combine(testing::ValuesIn(methods::configurations()),
                                          testing::ValuesIn(methods::kUpdates)),
                         power_case_name);

// The options of each log that the parameter stands for.
std::vector<systems::remote_log::LogOptions> logs_of(const ConfigurationAndUpdate& parameter) {
  const auto& [configuration, update] = parameter;
  std::vector<systems::remote_log::LogOptions> logs;
  for (const methods::Method& method : methods::methods()) {
    if (method.update != update || is_wasteful(method, configuration) ||
        prove(method, configuration).correctness != methods::Correctness::right) {
      continue;
    }
    logs.push_back(options_of(method, configuration.receive_buffers, kSlots));
    if (!method.uses(pmem::StepKind::flush_visibility)) continue;
    logs.push_back(logs.back());
    logs.back().read_for_flush = true;
  }
  return logs;
}

TEST_P(PowerOfTheLogServer, FailsAnywhere) {
  const Configuration& configuration = std::get<Configuration>(GetParam());
  std::uint64_t moments = 0;
  std::uint64_t runs = 0;
  const std::vector<systems::remote_log::LogOptions> logs = logs_of(GetParam());
  for (const systems::remote_log::LogOptions& options : logs) {
    SCOPED_TRACE(options.method_name());
    Explored explored;
    for (ExploreOptions exploration :
         {ExploreOptions{.images = Images::least}, ExploreOptions{.images = Images::most},
          ExploreOptions{.images = Images::random, .seed = 1}}) {
      exploration.before = &explored;
      explored = fail_everywhere(options, configuration, exploration);
      moments += explored.crash_points;
      runs += explored.runs;
      if (HasFailure()) return;
    }
  }
  std::cout << to_string(configuration) << ": " << runs << " failures at " << moments
            << " moments of " << logs.size() << " methods\n";
  EXPECT_GT(moments, 100U * logs.size());
  EXPECT_GE(logs.size(), 2U);
}

TEST_P(PowerOfTheLogServer, KeepsWhatFollowsTheLastRecordOfALostClient) {
  constexpr Picoseconds kLongerThanAnAppend = Microseconds(12);
  for (const systems::remote_log::LogOptions& options : logs_of(GetParam())) {
    for (Picoseconds after{}; after < kLongerThanAnAppend; after += Nanoseconds(100)) {
      SCOPED_TRACE(testing::Message() << options.method_name() << ", " << after.count() << " ps");
      append_behind_a_lost_client(options, std::get<Configuration>(GetParam()), after);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace perdura::bench::test
