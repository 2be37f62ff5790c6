// A log whose options cannot be, whose sides do not agree, or one of which does not come, stops, or
// is stopped: every call ends, within its limit, and says why.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>

#include "tests/library/processes.h"
#include "tests/support/wait_until.h"

namespace perdura::library_test {
namespace {

using std::chrono::milliseconds;

// --- options that cannot be

struct Bad {
  const char* name;
  std::function<void(LogOptions&)> change;
  const char* says;
};
class LibraryOptions : public testing::TestWithParam<Bad> {};

const Bad kBad[] = {
    {"no_job", [](LogOptions& o) { o.job = ""; }, "a job is a name"},
    {"slashes", [](LogOptions& o) { o.job = "a/b"; }, "without slashes"},
    {"a_zero", [](LogOptions& o) { o.job = std::string("a\0b", 3); }, "a job is a name"},
    {"a_long_job", [](LogOptions& o) { o.job = std::string(300, 'x'); }, "1 to 200 characters"},
    {"no_records", [](LogOptions& o) { o.records = 0; }, "records is 0"},
    {"too_many_records", [](LogOptions& o) { o.records = std::uint64_t{1} << 63; },
     "records is 9223372036854775808"},
    {"empty_records", [](LogOptions& o) { o.largest_record = 0; }, "largest_record is 0"},
    {"records_of_1_tib", [](LogOptions& o) { o.largest_record = std::size_t{1} << 40; },
     "largest_record is 1099511627776"},
    {"records_of_4_gib", [](LogOptions& o) { o.largest_record = std::size_t{1} << 32; },
     "largest_record is 4294967296"},
    {"the_largest_number", [](LogOptions& o) { o.largest_record = ~std::size_t{0}; },
     "largest_record is 18446744073709551615"},
    {"a_negative_limit", [](LogOptions& o) { o.append_timeout = milliseconds(-1); },
     "a timeout is negative"},
    {"no_such_domain", [](LogOptions& o) { o.configuration.domain = static_cast<Domain>(7); },
     "none of dmp, mhp and wsp"},
};
INSTANTIATE_TEST_SUITE_P(All, LibraryOptions, testing::ValuesIn(kBad),
                         [](const auto& bad) { return std::string(bad.param.name); });

void expect_invalid(const std::function<void()>& call, const std::string& says) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
  }
}

TEST_P(LibraryOptions, ThatCannotBeAreRefusedByBothSides) {
  const TemporaryJob job;
  LogOptions options = job.options();
  options.connect_timeout = milliseconds(0);
  GetParam().change(options);
  expect_invalid([&] { LogClient client(options); }, GetParam().says);
  expect_invalid([&] { LogServer server(options, [](auto...) {}); }, GetParam().says);
}

TEST(LibraryDirectory, ThatIsNotThereIsNotMade) {
  const TemporaryJob job;
  LogOptions options = job.options();
  options.directory += "/mistyped";
  expect_invalid([&] { LogServer server(options, [](auto...) {}); },
                 "mistyped: there is no such folder");
  EXPECT_FALSE(std::filesystem::exists(options.directory));
}

TEST(LibraryDirectory, WithoutPersistentMemoryIsTakenOnlyOnDemand) {
  const TemporaryJob job;
  LogOptions options = job.options();
  options.emulated = false;
  expect_invalid([&] { LogServer server(options, [](auto...) {}); }, "is no persistent memory");
  EXPECT_TRUE(std::filesystem::is_empty(options.directory));
  options.emulated = true;
  const LogServer server(options, [](auto...) {});
}

TEST(LibraryDirectory, OfAClientIsNotTouched) {
  const TemporaryJob job;
  LogOptions options = job.options();
  options.directory += "/of the server";
  options.connect_timeout = milliseconds(0);
  EXPECT_THROW(LogClient{options}, TimedOut);
  EXPECT_FALSE(std::filesystem::exists(options.directory));
}

TEST(LibraryChoose, RefusesUpdatesThatCannotBe) {
  for (const std::size_t size : {std::size_t{0}, ~std::size_t{0}}) {
    EXPECT_THROW(choose(Configuration{}, {.size = size}), std::invalid_argument);
    EXPECT_THROW(choose(Configuration{}, {.ordered = true, .second_size = size}),
                 std::invalid_argument);
  }
}

// --- the other side

template <class Problem>
std::string what_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Problem& problem) {
    return problem.what();
  }
  return "nothing was thrown";
}

// A server on a thread of this process.
class Serving {
 public:
  explicit Serving(
      const LogOptions& options, LogServer::Apply apply = [](auto...) {})
      : server_(options, std::move(apply)), thread_([this] {
          try {
            server_.run();
          } catch (...) {
            problem_ = std::current_exception();
          }
        }) {}
  ~Serving() { end(); }
  void stop() { server_.stop(); }
  // Stops it; rethrows what run() threw.
  void end() {
    if (!thread_.joinable()) return;
    server_.stop();
    thread_.join();
  }
  std::exception_ptr wait() {
    thread_.join();
    return problem_;
  }

 private:
  LogServer server_;
  std::exception_ptr problem_;
  std::thread thread_;
};

TEST(LibraryLimits, AClientWithoutAServerGivesUp) {
  const TemporaryJob job;
  LogOptions options = job.options();
  options.connect_timeout = milliseconds(20);
  const auto begin = std::chrono::steady_clock::now();
  try {
    LogClient client(options);
    FAIL();
  } catch (const TimedOut& error) {
    EXPECT_FALSE(error.in_doubt());
    EXPECT_EQ(error.what(), "the log '" + options.job +
                                "' cannot be reached within 0.02 s: no server answers; start its "
                                "server, or raise connect_timeout");
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begin, options.connect_timeout);
}

struct Other {
  const char* name;
  std::function<void(LogOptions&)> change;
  const char* says;  // with the other one's place for a gap
};
class LibraryOptionsDiffer : public testing::TestWithParam<Other> {};
const Other kOther[] = {
    {"record_size", [](LogOptions& o) { o.largest_record += 1; },
     "largest_record is 1024 {}, 1025 here"},
    {"records", [](LogOptions& o) { o.records *= 2; }, "records is 64 {}, 128 here"},
    {"ordering", [](LogOptions& o) { o.ordered = !o.ordered; }, "ordered is false {}, true here"},
    {"configuration",
     [](LogOptions& o) {
       o.configuration = {.domain = Domain::wsp, .transport = Transport::infiniband};
     },
     "configuration leads to the method 'write-imm-message' {}, 'write' here"},
};
INSTANTIATE_TEST_SUITE_P(All, LibraryOptionsDiffer, testing::ValuesIn(kOther),
                         [](const auto& other) { return std::string(other.param.name); });

LogOptions with_dmp(const TemporaryJob& job) {
  return job.with({.domain = Domain::dmp, .ddio = true, .transport = Transport::infiniband});
}

TEST_P(LibraryOptionsDiffer, BetweenClientAndServer) {
  const TemporaryJob job;
  const LogOptions options = with_dmp(job);
  Serving serving(options);
  LogOptions other = options;
  GetParam().change(other);
  try {
    LogClient client(other);
    FAIL() << "connected";
  } catch (const OptionsDiffer& error) {
    EXPECT_EQ(error.what(), "the server of the log '" + options.job + "' has other options: " +
                                fmt::format(fmt::runtime(GetParam().says), "at the server") +
                                "; give both sides the same options");
  }
  LogClient client(options);
  EXPECT_EQ(client.append("the server is none the worse"), 1U);
}

TEST_P(LibraryOptionsDiffer, BetweenTheServerAndTheLogThatIsThere) {
  if (std::string(GetParam().name) == "configuration") GTEST_SKIP() << "a log is not made for one";
  const TemporaryJob job;
  const LogOptions options = with_dmp(job);
  {
    Serving serving(options);
    LogClient(options).append("a record");
  }
  LogOptions other = options;
  GetParam().change(other);
  {
    Serving serving(other);
    EXPECT_EQ(what_of<OptionsDiffer>([&] { std::rethrow_exception(serving.wait()); }),
              "the log '" + options.job + "' was made with other options: " +
                  fmt::format(fmt::runtime(GetParam().says), "in the log") +
                  "; give the server the same, or remove the log");
  }
  Serving again(options);
  EXPECT_EQ(LogClient(options).tail(), 1U) << "it is as it was";
}

TEST(LibraryLimits, ASecondServerIsRefused) {
  const TemporaryJob job;
  const LogServer server(job.options(), [](auto...) {});
  EXPECT_EQ(what_of<std::runtime_error>([&] { LogServer(job.options(), [](auto...) {}); }),
            "the log '" + job.options().job +
                "' is being served already; end that server first, or name another job");
}

TEST(LibraryLimits, ASecondClientIsRefused) {
  const TemporaryJob job;
  Serving serving(job.options());
  LogClient client(job.options());
  EXPECT_EQ(what_of<std::runtime_error>([&] { LogClient{job.options()}; }),
            "the log '" + job.options().job +
                "' has a client already; end that one first, or append through it");
  EXPECT_EQ(client.append("a record"), 1U);
}

// --- stopping

class LibraryStop : public testing::TestWithParam<Configuration> {};
INSTANTIATE_TEST_SUITE_P(
    Configurations, LibraryStop,
    testing::Values(
        Configuration{.domain = Domain::dmp, .ddio = true, .transport = Transport::infiniband},
        Configuration{.domain = Domain::dmp, .ddio = false, .transport = Transport::infiniband},
        Configuration{.domain = Domain::wsp,
                      .receive_buffers_in_pm = true,
                      .transport = Transport::infiniband}),
    [](const auto& cell) {
      return std::string(cell.param.domain == Domain::wsp ? "wsp"
                         : *cell.param.ddio               ? "dmp_ddio"
                                                          : "dmp_no_ddio");
    });

// What stop() from Apply did before: the server had applied the record, and went without a word.
TEST_P(LibraryStop, FromApplyLeavesNoAppliedRecordInDoubt) {
  for (std::uint64_t last = 1; last <= 30; ++last) {
    const TemporaryJob job;
    LogOptions options = job.with(GetParam());
    options.stop_timeout = std::chrono::seconds(60);
    options.append_timeout = std::chrono::seconds(60);
    std::uint64_t applied = 0;
    Serving* serving = nullptr;
    std::mutex mutex;
    std::unique_lock made(mutex);
    Serving server(options, [&](std::uint64_t number, std::string_view) {
      const std::lock_guard wait_until_it_is_made(mutex);
      applied = number;
      if (number == last) serving->stop();
    });
    serving = &server;
    made.unlock();
    LogClient client(options);
    for (std::uint64_t i = 1; i <= last; ++i) ASSERT_EQ(client.append("a record"), i);
    EXPECT_FALSE(server.wait());
    EXPECT_EQ(applied, last) << "none after stop()";
  }
}

constexpr milliseconds kShort{20};

// Until it is under way: with a short limit a busy machine may not even begin. False if it was not
// acknowledged.
bool append_under_way(LogClient& client, const std::string& record) {
  for (;;) {
    try {
      client.append(record);
      return true;
    } catch (const TimedOut& error) {
      if (!error.in_doubt()) continue;
      EXPECT_NE(std::string(error.what()).find("it is under way, and the client goes on trying"),
                std::string::npos)
          << error.what();
      return false;
    }
  }
}

// Until it is in the log.
void append_within_short_limits(LogClient& client, const std::string& record) {
  const std::uint64_t number = client.tail() + 1;
  if (!append_under_way(client, record)) {
    EXPECT_TRUE(test::wait_until([&] { return client.tail() == number; }));
  }
}

TEST(LibraryLimits, AppendGivesUpAndGoesOnWhenTheServerIsThereAgain) {
  const TemporaryJob job;
  LogOptions options = job.options();
  options.stop_timeout = std::chrono::seconds(60);
  std::optional<Serving> serving(options);
  options.append_timeout = kShort;
  LogClient client(options);
  append_within_short_limits(client, "first");
  serving.reset();
  // The client was asked to go, so nothing is under way.
  try {
    client.append("never");
    FAIL() << "there is no server";
  } catch (const TimedOut& error) {
    EXPECT_FALSE(error.in_doubt()) << error.what();
    // Depending on when it asked last.
    const std::string text = "a record is not in the log '" + options.job + "' after 0.02 s: ";
    const std::string advice = "; it never will be, so append it again";
    EXPECT_TRUE(error.what() == text + "no server answers" + advice ||
                error.what() == text + "its server is ending" + advice)
        << error.what();
  }
  serving.emplace(job.options());
  append_within_short_limits(client, "second");
  EXPECT_EQ(client.tail(), 2U) << "what was given up is not in the log";
}

// A process that is stopped by a signal lives, and does nothing.
TEST(LibraryLimits, AppendToAServerThatStandsStillGivesUpInDoubt) {
  const TemporaryJob job;
  LogOptions options = with_dmp(job);
  struct Told {
    std::atomic<std::uint64_t> applied{0};
    std::atomic<bool> wrong{false};
  };
  const Shared<Told> told;
  Child server([&] {
    LogServer log(options, [&](std::uint64_t number, std::string_view record) {
      if (record != std::to_string(number)) told->wrong = true;
      told->applied = number;
    });
    log.run();
  });
  options.append_timeout = kShort;
  LogClient client(options);
  append_within_short_limits(client, "1");
  server.stand_still();
  EXPECT_FALSE(append_under_way(client, "2")) << "the server stands still";
  // It is before this one in line.
  try {
    client.append("not this");
    FAIL() << "the server stands still";
  } catch (const TimedOut& error) {
    EXPECT_FALSE(error.in_doubt());
  }
  server.go_on();
  EXPECT_TRUE(test::wait_until([&] { return client.tail() == 2; }));
  append_within_short_limits(client, "3");
  EXPECT_TRUE(test::wait_until([&] { return told->applied == 3; }));
  EXPECT_FALSE(told->wrong);
}

TEST(LibraryLimits, AClientOfAServerThatStandsStillCanBeDestroyed) {
  const TemporaryJob job;
  LogOptions options = with_dmp(job);
  Child server([&] { LogServer(options, [](auto...) {}).run(); });
  options.append_timeout = kShort;
  {
    LogClient client(options);
    append_within_short_limits(client, "1");
    server.stand_still();
    EXPECT_FALSE(append_under_way(client, "2"));
  }
  server.go_on();
}

TEST(LibraryLimits, AServerWaitsForAClientThatStandsStillNoLongerThanItIsTold) {
  const TemporaryJob job;
  LogOptions options = job.options();
  options.connect_timeout = std::chrono::seconds(60);
  options.stop_timeout = kShort;
  struct Told {
    std::atomic<bool> appended{false};
  };
  const Shared<Told> told;
  Child client([&] {
    LogClient log(options);
    log.append("1");
    told->appended = true;
    for (;;) pause();
  });
  Serving serving(options);
  ASSERT_TRUE(test::wait_until([&] { return told->appended.load(); }));
  client.stand_still();
  serving.stop();
  EXPECT_FALSE(serving.wait());
}

TEST(LibraryLimits, WhatApplyThrowsLeavesRun) {
  const TemporaryJob job;
  LogOptions options = job.options();
  options.append_timeout = kShort;
  Serving serving(options, [](auto...) { throw std::length_error("enough"); });
  LogClient client(options);
  append_under_way(client, "1");
  EXPECT_THROW(std::rethrow_exception(serving.wait()), std::length_error);
}

TEST(LibraryLimits, TheLongestLimitIsNone) {
  const TemporaryJob job;
  LogOptions options = job.options();
  options.connect_timeout = options.append_timeout = options.stop_timeout = milliseconds::max();
  Serving serving(options);
  LogClient client(options);
  EXPECT_EQ(client.append(""), 1U) << "a record may be empty";
  EXPECT_EQ(client.append(std::string(options.largest_record, 'x')), 2U);
  EXPECT_THROW(client.append(std::string(options.largest_record + 1, 'x')), std::invalid_argument);
}

}  // namespace
}  // namespace perdura::library_test
