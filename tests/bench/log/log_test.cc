// RemoteLog where nothing fails: records arrive in order and whole, the ring goes around many
// times, and a client that comes later goes on at the tail.
#include <atomic>

#include "platform/base/error.h"
#include "tests/bench/log/support.h"

namespace perdura::bench::test {
namespace {

constexpr std::uint64_t kRecords = 200;

struct Case {
  std::string platform;
  std::string method;
};
std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.method << " on " << c.platform;
}
// Those that every device can run, with READ for FLUSH.
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const methods::Method& method : methods::methods()) {
    if (method.uses(pmem::StepKind::atomic_write) ||
        method.uses(pmem::StepKind::flush_persistence)) {
      continue;
    }
    for (const std::string& platform : perdura::test::platform_names()) {
      cases.push_back({platform, method.name});
    }
  }
  return cases;
}
std::string case_name(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.platform + "_" + info.param.method;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class Log : public testing::TestWithParam<Case> {
 protected:
  systems::remote_log::LogOptions options() const {
    return options_of(methods::with_read_for_flush(methods::find_method(GetParam().method)),
                      pmem::Medium::pm);
  }
};
INSTANTIATE_TEST_SUITE_P(All, Log, testing::ValuesIn(all_cases()), case_name);

TEST_P(Log, GoesAroundItsRing) {
  const systems::remote_log::LogOptions agreed = options();
  const auto platform = perdura::test::make_platform(GetParam().platform, 2);
  std::atomic<std::uint64_t> applied{0};
  std::uint64_t head_reads = 0;
  platform->start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    systems::remote_log::LogServer server(thread, "log", agreed,
                                          [&](std::uint64_t number, auto payload) {
                                            EXPECT_EQ(number, applied + 1);
                                            EXPECT_TRUE(is_payload_of(number, payload)) << number;
                                            applied = number;
                                          });
    thread.executor.spawn(server.collect(Microseconds(20)));
    co_await server.serve();
  });
  platform->start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    for (std::uint64_t number = 1; number <= kRecords;) {
      std::unique_ptr<systems::remote_log::RemoteLog> log;
      try {
        log = co_await systems::remote_log::RemoteLog::connect(thread, {0, 0}, agreed);
      } catch (const PlatformError&) {
        continue;  // the server has not yet seen the end of the connection before
      }
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
      EXPECT_TRUE(!refused && refused.error() == methods::UpdateError::too_large);
      head_reads += log->head_reads();
    }
    while (applied < kRecords) co_await sleep_for(Microseconds(10));
  });
  platform->run();
  EXPECT_EQ(applied, kRecords);
  EXPECT_GT(head_reads, 0U) << "the ring is much smaller than the log";
}

TEST(LogShape, IsCheckedWhenItIsOpened) {
  const auto platform = perdura::test::make_platform("sim", 1);
  const systems::remote_log::LogOptions agreed =
      options_of(methods::find_method("write"), pmem::Medium::dram);
  int refused = 0;
  platform->start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto open = [&](const systems::remote_log::LogOptions& options) {
      systems::remote_log::LogServer(thread, "log", options, [](std::uint64_t, auto) {});
    };
    open(agreed);
    open(agreed);
    systems::remote_log::LogOptions other = agreed;
    other.slots *= 2;
    systems::remote_log::LogOptions shorter = agreed;
    shorter.largest_record -= 1;
    for (const systems::remote_log::LogOptions& options : {other, shorter}) {
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

// Whichever byte of a record is wrong, it is none.
TEST(LogRecord, IsRecognizedByItsChecksum) {
  std::vector<std::byte> record(sizeof(systems::remote_log::RecordHeader) + kLargest);
  const auto payload = payload_of(5);
  std::copy(payload.begin(), payload.end(),
            record.begin() + sizeof(systems::remote_log::RecordHeader));
  const std::size_t size = systems::remote_log::write_header(record, 5, payload.size(), true);
  EXPECT_EQ(systems::remote_log::length_of(record, 5, true), payload.size());
  EXPECT_EQ(systems::remote_log::length_of(record, 6, true), std::nullopt);
  for (std::size_t at = 0; at < size; ++at) {
    record[at] ^= std::byte{1};
    EXPECT_EQ(systems::remote_log::length_of(record, 5, true), std::nullopt) << at;
    record[at] ^= std::byte{1};
  }
}

}  // namespace
}  // namespace perdura::bench::test
