// The log by RPC where nothing fails: records arrive in order and whole, slots are used again and
// again, and a client that comes later goes on at the tail. (With failures: tests/explore/.)
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "methods/remote_persister.h"
#include "platform/base/error.h"
#include "systems/rpc_log/client.h"
#include "systems/rpc_log/server.h"
#include "tests/support/platforms.h"

namespace perdura::systems::rpc_log {
namespace {

constexpr std::uint32_t kLargest = 90;
constexpr std::uint64_t kRecords = 400;
// The server rarely looks for records: most are applied because the log is full.
constexpr Picoseconds kLook = Milliseconds(1);

std::vector<std::byte> payload_of(std::uint64_t number) {
  std::vector<std::byte> payload(number * 37 % (kLargest + 1));
  for (std::size_t i = 0; i < payload.size(); ++i) {
    payload[i] = static_cast<std::byte>(number * 131 + i * 7 + 1);
  }
  return payload;
}

Options options_of(bool polls) {
  return {.log = {.slots = 6, .largest_payload = kLargest}, .polls = polls};
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
  bool polls;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::string& platform : test::platform_names()) {
    for (const bool polls : {false, true}) cases.push_back({platform, polls});
  }
  return cases;
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  return info.param.platform + (info.param.polls ? "_polled" : "_sent");
}

class RpcLog : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, RpcLog, testing::ValuesIn(all_cases()), case_name);

TEST_P(RpcLog, UsesItsSlotsAgainAndAgain) {
  const Options agreed = options_of(GetParam().polls);
  const auto platform = test::make_platform(GetParam().platform, 2);
  std::atomic<std::uint64_t> applied{0};
  platform->start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto server = std::make_shared<LogServer>(
        thread, "log", agreed, [&](std::uint64_t number, std::span<const std::byte> payload) {
          EXPECT_EQ(number, applied + 1);
          EXPECT_TRUE(std::ranges::equal(payload, payload_of(number))) << number;
          applied = number;
        });
    co_await server->serve(kLook);
  });
  platform->start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    for (std::uint64_t number = 1; number <= kRecords;) {
      const auto log = co_await connect(thread, agreed);
      EXPECT_EQ(log->tail(), number - 1);
      if (log->tail() != number - 1) co_return;
      for (const std::uint64_t last = number + kRecords / 4 - 1; number <= last; ++number) {
        const auto payload = payload_of(number);
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
}

TEST_P(RpcLog, RefusesASecondClientAndOtherOptions) {
  const Options agreed = options_of(GetParam().polls);
  const auto platform = test::make_platform(GetParam().platform, 2);
  platform->start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await std::make_shared<LogServer>(thread, "log", agreed, [](std::uint64_t, auto) {
    })->serve(kLook);
  });
  int refused = 0;
  platform->start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    Options longer = agreed;
    ++longer.log.largest_payload;
    Options other_way = agreed;
    other_way.polls = !agreed.polls;
    for (const Options& other : {longer, other_way}) {
      try {
        co_await LogClient::connect(thread, {0, 0}, other);
      } catch (const UsageError& error) {
        EXPECT_NE(std::string(error.what()).find("same options"), std::string::npos);
        ++refused;
      }
    }
    const auto first = co_await connect(thread, agreed);
    try {
      co_await LogClient::connect(thread, {0, 0}, agreed);
    } catch (const methods::RefusedForNow&) {
      ++refused;
    }
  });
  platform->run();
  EXPECT_EQ(refused, 3);
}

// What the server's CPU writes for a record: the record and two counts, each made durable before
// the next, and the client's device writes nothing to persistent memory.
TEST_P(RpcLog, OnlyTheServersCpuWritesTheLog) {
  constexpr std::uint64_t kAppends = 5;
  const Options agreed = options_of(GetParam().polls);
  const auto platform = test::make_platform(GetParam().platform, 2);
  platform->start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await std::make_shared<LogServer>(thread, "log", agreed, [](std::uint64_t, auto) {
    })->serve(kLook);
  });
  pmem::Writes written;
  platform->start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto log = co_await connect(thread, agreed);
    for (std::uint64_t i = 0; i < kAppends; ++i) {
      const std::vector<std::byte> payload(64);
      const auto appended = co_await log->append(payload);
      EXPECT_TRUE(appended);
    }
    written = thread.node.pm_writes();
  });
  platform->run();
  EXPECT_EQ(written.total().bytes_issued, 0U) << "by the client's node";
}

TEST(RpcLogShape, IsCheckedWhenItIsOpened) {
  const auto platform = test::make_platform("sim", 1);
  const LocalLogOptions agreed = options_of(false).log;
  int refused = 0;
  platform->start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    LocalLog(thread.node, "log", agreed);
    LocalLog(thread.node, "log", agreed);
    LocalLogOptions roomier = agreed;
    roomier.slots *= 2;
    LocalLogOptions shorter = agreed;
    shorter.largest_payload -= 1;
    for (const LocalLogOptions& options : {roomier, shorter}) {
      try {
        LocalLog(thread.node, "log", options);
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

// Records that are neither applied nor given up are there after the log is opened again.
TEST(RpcLogShape, TheCountsOfALocalLogOutliveIt) {
  const auto platform = test::make_platform("sim", 1);
  const LocalLogOptions options = options_of(false).log;
  platform->start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    {
      LocalLog log(thread.node, "log", options);
      for (std::uint64_t number = 1; !log.is_full(); ++number) {
        EXPECT_EQ(log.append(payload_of(number)), number);
      }
      EXPECT_EQ(log.apply_some(2, [](std::uint64_t, auto) {}), 2U);
    }
    LocalLog log(thread.node, "log", options);
    EXPECT_EQ(log.head(), 2U);
    EXPECT_EQ(log.tail(), options.slots);
    std::uint64_t next = 3;
    log.apply_some(~std::uint64_t{0}, [&](std::uint64_t number, auto payload) {
      EXPECT_EQ(number, next++);
      EXPECT_TRUE(std::ranges::equal(payload, payload_of(number)));
    });
    EXPECT_EQ(next, options.slots + 1);
    EXPECT_EQ(log.append(payload_of(next)), next);
    log.rewind();
    EXPECT_EQ(log.head(), log.tail());
    co_return;
  });
  platform->run();
}

}  // namespace
}  // namespace perdura::systems::rpc_log
