// The log of FileMR where nothing fails: records arrive in order and whole, the room is used again
// and again, and a client that comes later goes on at the tail. (With failures: tests/explore/.)
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "methods/remote_persister.h"
#include "platform/base/error.h"
#include "platform/sim/failures.h"
#include "platform/sim/sim_platform.h"
#include "systems/filemr_log/client.h"
#include "systems/filemr_log/filemr_log.h"
#include "systems/filemr_log/server.h"
#include "tests/support/platforms.h"

namespace perdura::systems::filemr_log {
namespace {

constexpr std::uint32_t kLargest = 90;
constexpr std::uint64_t kRecords = 400;
constexpr Picoseconds kLook = Milliseconds(1);

std::vector<std::byte> short_payload(std::uint64_t number) {
  std::vector<std::byte> payload(number * 37 % (kLargest + 1));
  for (std::size_t i = 0; i < payload.size(); ++i) {
    payload[i] = static_cast<std::byte>(number * 131 + i * 7 + 1);
  }
  return payload;
}

// Room for six of the longest records and a half.
Options options_of(Persistence persistence) {
  return {.room = 13 * record_size(kLargest) / 2 / kWord * kWord,
          .largest_payload = kLargest,
          .persistence = persistence};
}

// Connects as soon as the server has learned that its last client is gone.
Task<std::unique_ptr<LogClient>> connect(Thread& thread, const Options& options) {
  for (;;) {
    try {
      co_return co_await LogClient::connect(thread, {0, 0}, options);
    } catch (const methods::RefusedForNow&) {
    }
    co_await sleep_for(Microseconds(10));
  }
}

struct Case {
  std::string platform;
  Persistence persistence;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::string& platform : test::platform_names()) {
    for (const Persistence each :
         {Persistence::none, Persistence::flush, Persistence::message, Persistence::commit}) {
      cases.push_back({platform, each});
    }
  }
  return cases;
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  constexpr std::string_view kNames[] = {"none", "flush", "message", "commit"};
  return info.param.platform + "_" +
         std::string(kNames[static_cast<std::size_t>(info.param.persistence)]);
}

// The model's devices commit only if they are asked to.
std::unique_ptr<Platform> platform_of(const Case& each) {
  if (each.persistence != Persistence::commit || each.platform != "sim") {
    return test::make_platform(each.platform, 2);
  }
  sim::Profile profile = test::erda_testbed();
  profile.nic.flush_persistence = true;
  return std::make_unique<sim::SimPlatform>(profile, 2);
}

class FileMrLog : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, FileMrLog, testing::ValuesIn(all_cases()), case_name);

TEST_P(FileMrLog, UsesItsRoomAgainAndAgain) {
  const Options agreed = options_of(GetParam().persistence);
  const auto platform = platform_of(GetParam());
  std::atomic<std::uint64_t> applied{0};
  std::atomic<std::uint64_t> range_faults{0};
  platform->start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    LogServer* serving = nullptr;
    const auto server = std::make_shared<LogServer>(
        thread, "log", agreed, [&](std::uint64_t number, std::span<const std::byte> payload) {
          EXPECT_EQ(number, applied + 1);
          EXPECT_TRUE(std::ranges::equal(payload, short_payload(number))) << number;
          range_faults = serving->range_faults();
          applied = number;
        });
    serving = server.get();
    co_await server->serve(kLook);
  });
  platform->start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    for (std::uint64_t number = 1; number <= kRecords;) {
      const auto log = co_await connect(thread, agreed);
      EXPECT_EQ(log->tail(), number - 1);
      if (log->tail() != number - 1) co_return;
      for (const std::uint64_t last = number + kRecords / 4 - 1; number <= last; ++number) {
        const auto payload = short_payload(number);
        const auto appended = co_await log->append(payload);
        EXPECT_TRUE(appended && *appended == number);
        if (!appended) co_return;
      }
      const std::vector<std::byte> longer(kLargest + 1);
      const auto refused = co_await log->append(longer);
      EXPECT_TRUE(!refused && refused.error() == services::LogError::too_large);
    }
    while (applied < kRecords) co_await sleep_for(Microseconds(10));
  });
  platform->run();
  EXPECT_EQ(applied, kRecords);
  EXPECT_GT(range_faults, 0U) << "the room is much smaller than the log";
}

TEST_P(FileMrLog, RefusesASecondClientAndOtherOptions) {
  const Options agreed = options_of(GetParam().persistence);
  const auto platform = platform_of(GetParam());
  platform->start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await std::make_shared<LogServer>(thread, "log", agreed, [](std::uint64_t, auto) {
    })->serve(kLook);
  });
  int refused = 0;
  platform->start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    Options other = agreed;
    other.room += kWord;
    try {
      co_await LogClient::connect(thread, {0, 0}, other);
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("same options"), std::string::npos);
      ++refused;
    }
    const auto first = co_await connect(thread, agreed);
    try {
      co_await LogClient::connect(thread, {0, 0}, agreed);
    } catch (const methods::RefusedForNow&) {
      ++refused;
    }
  });
  platform->run();
  EXPECT_EQ(refused, 2);
}

// A device that cannot commit must not be taken for one that has.
TEST(FileMrLogDevices, ThatCannotCommitAreRefusedOnBothSides) {
  const auto platform = test::make_platform("sim", 2);
  const Options commits = options_of(Persistence::commit);
  int refused = 0;
  const auto expect_refusal = [&](const UsageError& error) {
    EXPECT_EQ(std::string(error.what()),
              "filemr-log with commits needs COMMIT, which this device does not have; choose "
              "another device, or use platform shm");
    ++refused;
  };
  platform->start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    try {
      LogServer(thread, "log", commits, [](std::uint64_t, auto) {});
    } catch (const UsageError& error) {
      expect_refusal(error);
    }
    co_return;
  });
  platform->start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    try {
      co_await LogClient::connect(thread, {0, 0}, commits);
    } catch (const UsageError& error) {
      expect_refusal(error);
    }
  });
  platform->run();
  EXPECT_EQ(refused, 2);
}

TEST(FileMrLogParameters, FlushAndCommitExcludeEachOther) {
  EXPECT_EQ(kFileMrLog.published({}, {{"commit", 1}}).name, "write-persist");
  EXPECT_EQ(kFileMrLog.published({}, {{"flush", 1}, {"commit", 0}}).name, "write-flush");
  EXPECT_THROW(kFileMrLog.published({}, {{"flush", 1}, {"commit", 1}}), UsageError);
}

// A client dies after the server's device has stored its record and before it could ask the server
// to write it back. The next client's record is durable, and would be lost with the one before it.
TEST(FileMrLogOfADeadClient, IsDurableBeforeAnotherAppendsToIt) {
  sim::SimPlatform platform(test::erda_testbed(), 3);
  platform.track_durability({.domain = pmem::PersistenceDomain::dmp, .ddio = true});
  const Options agreed = options_of(Persistence::message);
  std::uint64_t applied = 0;
  const auto serve = [&](Picoseconds look) {
    platform.start_service(0, 0, CompletionMode::polling, [&, look](Thread& thread) -> Task<> {
      const auto server = std::make_shared<LogServer>(
          thread, "log", agreed, [&](std::uint64_t number, auto) { applied = number; });
      co_await server->serve(look);
    });
  };
  bool is_dead = false;
  bool has_failed = false;
  serve(std::chrono::seconds(1));  // it applies nothing before the failure
  platform.start_service(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto log = co_await connect(thread, agreed);
    // So long that it has a line of its own, which the next record does not write back.
    const std::vector<std::byte> payload(kLargest, std::byte{1});
    const auto appended = co_await log->append(payload);
    ADD_FAILURE() << "it has not died in time, and appended " << *appended;
  });
  platform.start(2, 2, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    std::unique_ptr<pmem::Region> region;
    while (region == nullptr || region->load(kSizeOffset) == 0) {
      if (region == nullptr) region = platform.local_node(0)->open_region("log");
      co_await sleep_for(Nanoseconds(50));
    }
    platform.at(thread.executor.now(), [&] {
      platform.kill(1);
      is_dead = true;
    });
    while (!is_dead) co_await sleep_for(Microseconds(1));
    const auto log = co_await connect(thread, agreed);
    EXPECT_EQ(log->tail(), 1U);
    const auto payload = short_payload(2);
    const auto appended = co_await log->append(payload);
    EXPECT_TRUE(appended && *appended == 2);
    EXPECT_EQ(applied, 0U);
    platform.at(thread.executor.now(), [&] {
      pmem::LeastChoices least;
      platform.fail_power(0, least);
      serve(kLook);
      has_failed = true;
    });
    while (!has_failed || applied < 2) {
      if (thread.executor.now() > Time(std::chrono::milliseconds(500))) break;
      co_await sleep_for(Microseconds(10));
    }
  });
  platform.run();
  EXPECT_EQ(applied, 2U);
}

TEST(FileMrLogShape, IsCheckedWhenItIsOpened) {
  const auto platform = test::make_platform("sim", 1);
  const Options agreed = options_of(Persistence::none);
  int refused = 0;
  platform->start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto open = [&](const Options& options) {
      LogServer(thread, "log", options, [](std::uint64_t, auto) {});
    };
    open(agreed);
    open(agreed);
    Options roomier = agreed;
    roomier.room *= 2;
    Options shorter = agreed;
    shorter.largest_payload -= 1;
    for (const Options& options : {roomier, shorter}) {
      try {
        open(options);
      } catch (const UsageError& error) {
        EXPECT_NE(std::string(error.what()).find("region 'log'"), std::string::npos);
        ++refused;
      }
    }
    co_return;
  });
  platform->run();
  EXPECT_EQ(refused, 2);
}

}  // namespace
}  // namespace perdura::systems::filemr_log
