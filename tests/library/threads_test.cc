// Several threads that append through one client, while the server is killed by SIGKILL again and
// again: what append() returned for is in the log, once, in each thread's order.
//
// PERDURA_TEST_APPENDS says how many appends each configuration makes (20,000 if it does not, at
// most 4,000,000); PERDURA_TEST_KILLS, how many kills (20).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "tests/library/processes.h"
#include "tests/support/seed.h"
#include "tests/support/wait_until.h"

namespace perdura::library_test {
namespace {

constexpr std::size_t kThreads = 8;
constexpr std::uint64_t kMostAppends = 4'000'000;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Thread t's i-th record, from 1, as it stands in the log.
constexpr std::uint64_t word_of(std::uint64_t thread, std::uint64_t i) { return thread << 32 | i; }

struct ToldByThreads {
  std::array<std::atomic<std::uint64_t>, kThreads> acknowledged{};
  std::atomic<std::uint64_t> wrong_number{0};
  std::atomic<std::uint64_t> wrong_record{0};
  std::atomic<std::uint64_t> again{0};  // records that the server was given a second time
  // By number: what the server was given.
  std::array<std::atomic<std::uint64_t>, kMostAppends + 1> applied{};

  std::uint64_t appends() const {
    std::uint64_t sum = 0;
    for (const auto& each : acknowledged) sum += each;
    return sum;
  }
};

class ThreadsOfTheLibrary : public testing::TestWithParam<Domain> {};
INSTANTIATE_TEST_SUITE_P(Configurations, ThreadsOfTheLibrary,
                         testing::Values(Domain::dmp, Domain::wsp), [](const auto& cell) {
                           return std::string(cell.param == Domain::dmp ? "dmp_ddio" : "wsp_ddio");
                         });

TEST_P(ThreadsOfTheLibrary, AppendThroughOneClientWhileTheServerIsKilled) {
  const std::uint64_t appends =
      std::min(from_environment("PERDURA_TEST_APPENDS", 20'000), kMostAppends);
  const std::uint64_t kills = from_environment("PERDURA_TEST_KILLS", 20);
  const std::uint64_t each = appends / kThreads;
  const unsigned seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const TemporaryJob job;
  LogOptions options = job.with({.domain = GetParam(),
                                 .ddio = true,
                                 .receive_buffers_in_pm = GetParam() == Domain::wsp,
                                 .transport = Transport::infiniband});
  options.largest_record = 64;
  const Shared<ToldByThreads> told;
  const auto start_server = [&] {
    return Child([&] {
      LogServer server(options, [&](std::uint64_t number, std::string_view record) {
        std::uint64_t word = 0;
        if (record.size() == sizeof word) std::memcpy(&word, record.data(), sizeof word);
        const std::uint64_t before = told->applied[number].exchange(word);
        if (before != 0) ++told->again;
        if (word == 0 || (before != 0 && before != word)) ++told->wrong_record;
      });
      server.run();
    });
  };
  Child server = start_server();
  const auto begin = std::chrono::steady_clock::now();
  Child client([&] {
    LogClient log(options);
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::uint64_t last = 0;
        for (std::uint64_t i = 1; i <= each; ++i) {
          const std::uint64_t word = word_of(t, i);
          const std::uint64_t number =
              log.append({reinterpret_cast<const char*>(&word), sizeof word});
          if (number <= last || number > kMostAppends) ++told->wrong_number;
          last = number;
          told->acknowledged[t] = i;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  for (std::uint64_t kill = 1; kill <= kills; ++kill) {
    // Kills are spread over the run, none of them at a place that is known.
    const std::uint64_t goal =
        std::min(told->appends() + 1 + random() % (2 * appends / (kills + 1)), appends);
    ASSERT_TRUE(test::wait_until([&] { return told->appends() >= goal; }))
        << "before kill " << kill;
    server.end();
    server = start_server();
  }
  ASSERT_EQ(client.wait(), 0);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  const std::uint64_t acknowledged = told->appends();
  EXPECT_EQ(acknowledged, each * kThreads);
  EXPECT_EQ(told->wrong_number, 0U);
  // All that is in the log is applied in the end.
  EXPECT_TRUE(test::wait_until([&] { return told->applied[acknowledged] != 0; }));
  EXPECT_EQ(told->wrong_record, 0U);
  std::array<std::uint64_t, kThreads> next{};
  std::uint64_t wrong = 0;
  for (std::uint64_t number = 1; number <= acknowledged; ++number) {
    const std::uint64_t word = told->applied[number];
    const std::uint64_t thread = word >> 32;
    if (thread >= kThreads || word != word_of(thread, ++next[thread])) ++wrong;
  }
  EXPECT_EQ(wrong, 0U) << "lost, twice, or not in its thread's order";
  EXPECT_EQ(told->applied[acknowledged + 1], 0U) << "more than was appended";
  RecordProperty("appends", std::to_string(acknowledged));
  printf("%lu appends by %zu threads, %lu kills, %lu records applied again, %.1f s\n", acknowledged,
         kThreads, kills, told->again.load(), taken.count());
}

}  // namespace
}  // namespace perdura::library_test
