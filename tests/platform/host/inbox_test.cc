// Work that threads of no platform, and other executors, hand to an executor.
#include "platform/host/inbox.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "platform/host/thread_executor.h"

namespace perdura::host {
namespace {

using std::chrono::steady_clock;

// An executor on a thread of its own, until stop().
class Running {
 public:
  explicit Running(CompletionMode mode)
      : executor_(
            runtime::HostClock::start(), mode, doorbell_,
            [](std::exception_ptr) { ADD_FAILURE() << "what was posted leaves by its future"; }),
        inbox_(executor_.inbox()),
        thread_([this] { executor_.run(); }) {}
  ~Running() { stop(); }
  Inbox& inbox() { return *inbox_; }
  std::shared_ptr<Inbox> shared_inbox() { return inbox_; }
  std::thread::id thread_id() const { return thread_.get_id(); }
  void stop() {
    if (!thread_.joinable()) return;
    executor_.stop();
    thread_.join();
  }

 private:
  runtime::Doorbell doorbell_;
  ThreadExecutor executor_;
  std::shared_ptr<Inbox> inbox_;
  std::thread thread_;
};

Task<> for_ever() {
  for (;;) co_await sleep_for(std::chrono::hours(1));
}

template <class T>
bool is_broken(std::future<T> future) {
  try {
    future.get();
  } catch (const std::future_error& error) {
    return error.code() == std::future_errc::broken_promise;
  }
  return false;
}

class InboxOf : public testing::TestWithParam<CompletionMode> {};
INSTANTIATE_TEST_SUITE_P(Executors, InboxOf,
                         testing::Values(CompletionMode::polling, CompletionMode::event),
                         [](const auto& mode) {
                           return mode.param == CompletionMode::polling ? "polling" : "event";
                         });

TEST_P(InboxOf, BringsResultsBack) {
  Running running(GetParam());
  auto text =
      running.inbox().post([given = std::string("what was captured lives")]() -> Task<std::string> {
        co_await sleep_for(Microseconds(1));
        co_return given;
      });
  auto moved = running.inbox().post(
      []() -> Task<std::unique_ptr<int>> { co_return std::make_unique<int>(7); });
  EXPECT_EQ(text.get(), "what was captured lives");
  EXPECT_EQ(*moved.get(), 7);
}

TEST_P(InboxOf, RunsWorkOnItsExecutorsThread) {
  Running running(GetParam());
  EXPECT_EQ(running.inbox()
                .post([]() -> Task<std::thread::id> { co_return std::this_thread::get_id(); })
                .get(),
            running.thread_id());
}

TEST_P(InboxOf, BringsExceptionsBack) {
  Running running(GetParam());
  auto thrown = running.inbox().post([]() -> Task<int> {
    co_await yield();
    throw std::out_of_range("from the work");
  });
  auto thrown_at_once =
      running.inbox().post([]() -> Task<> { throw std::length_error("instead of a task"); });
  EXPECT_THROW(thrown.get(), std::out_of_range);
  EXPECT_THROW(thrown_at_once.get(), std::length_error);
  EXPECT_EQ(running.inbox().post([]() -> Task<int> { co_return 1; }).get(), 1) << "it goes on";
}

TEST_P(InboxOf, NothingOfTheWorkIsLeftWhenItsResultIsThere) {
  Running running(GetParam());
  for (int i = 0; i < 1000; ++i) {
    auto witness = std::make_shared<int>(i);
    auto result = running.inbox().post([witness]() -> Task<int> {
      const auto in_frame = witness;
      co_await yield();
      co_return *in_frame;
    });
    ASSERT_EQ(result.get(), i);
    ASSERT_EQ(witness.use_count(), 1);
  }
}

TEST_P(InboxOf, KeepsTheOrderOfEachProducer) {
  constexpr std::size_t kProducers = 6;
  constexpr std::uint64_t kEach = 2000;
  Running running(GetParam());
  std::array<std::uint64_t, kProducers> last{};  // the executor's thread only
  std::uint64_t wrong = 0;
  std::vector<std::thread> producers;
  for (std::size_t p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      std::vector<std::future<std::uint64_t>> results;
      for (std::uint64_t i = 1; i <= kEach; ++i) {
        results.push_back(running.inbox().post([&, p, i]() -> Task<std::uint64_t> {
          if (last[p] + 1 != i) ++wrong;
          last[p] = i;
          if (i % 7 == 0) co_await yield();
          co_return i* p;
        }));
        // Now one by one, which lets the executor fall asleep, now many at once.
        if (i % 300 < 100) results.back().wait();
      }
      for (std::uint64_t i = 1; i <= kEach; ++i) EXPECT_EQ(results[i - 1].get(), i * p);
    });
  }
  for (std::thread& producer : producers) producer.join();
  running.stop();
  EXPECT_EQ(wrong, 0U);
}

TEST_P(InboxOf, WhoeverGivesUpWaitsNoLonger) {
  Running running(GetParam());
  std::atomic<bool> go_on{false};
  std::atomic<bool> done{false};
  {
    auto slow = running.inbox().post([&]() -> Task<> {
      while (!go_on) co_await sleep_for(Microseconds(10));
      done = true;
    });
    const auto deadline = steady_clock::now() + Milliseconds(2);
    EXPECT_EQ(slow.wait_until(deadline), std::future_status::timeout);
    EXPECT_GE(steady_clock::now(), deadline);
  }
  go_on = true;
  // The work goes on without anybody who waits for it.
  running.inbox()
      .post([&]() -> Task<> {
        while (!done) co_await yield();
      })
      .get();
}

TEST_P(InboxOf, ReportsThatItsExecutorHasStopped) {
  Running running(GetParam());
  auto under_way = running.inbox().post([] { return for_ever(); });
  running.inbox().post([]() -> Task<> { co_return; }).get();  // that one has begun
  running.stop();
  EXPECT_TRUE(is_broken(std::move(under_way)));
  EXPECT_TRUE(is_broken(running.inbox().post([]() -> Task<int> { co_return 1; })));
}

TEST(Inbox, OutlivesAnExecutorThatNeverRan) {
  runtime::Doorbell doorbell;
  auto executor = std::make_unique<ThreadExecutor>(
      runtime::HostClock::start(), CompletionMode::event, doorbell, [](std::exception_ptr) {});
  const auto inbox = executor->inbox();
  auto waiting = inbox->post([]() -> Task<int> { co_return 1; });
  executor.reset();
  EXPECT_TRUE(is_broken(std::move(waiting)));
  EXPECT_TRUE(is_broken(inbox->post([]() -> Task<int> { co_return 1; })));
}

// Stopped at any moment: everybody gets a result or the error, and work that was not done is gone.
TEST_P(InboxOf, NobodyWaitsForEverWhenItIsStoppedMeanwhile) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 50; ++round) {
    Running running(GetParam());
    const auto inbox = running.shared_inbox();
    std::atomic<std::uint64_t> given{0};
    std::vector<std::thread> producers;
    for (int p = 0; p < 3; ++p) {
      producers.emplace_back([&] {
        std::shared_ptr<int> witness = std::make_shared<int>(0);
        for (bool broken = false; !broken;) {
          auto result = inbox->post([&given, witness]() -> Task<> {
            ++given;
            co_await yield();
          });
          try {
            result.get();
          } catch (const std::future_error&) {
            broken = true;
          }
        }
        EXPECT_EQ(witness.use_count(), 1);
      });
    }
    const std::uint64_t stop_after = random() % 200;
    while (given < stop_after) std::this_thread::yield();
    running.stop();
    for (std::thread& producer : producers) producer.join();
  }
}

TEST_P(InboxOf, RingsWhoeverAsksForIt) {
  Running caller(GetParam());
  Running worker(GetParam());
  const auto there = worker.shared_inbox();
  for (int i = 0; i < 200; ++i) {
    auto round_trip = caller.inbox().post([there, i]() -> Task<int> {
      std::future<int> result = there->post(
          [i]() -> Task<int> {
            co_await sleep_for(Microseconds(i));
            co_return 2 * i;
          },
          current_thread_executor().inbox());
      const auto* const awaited = &result;
      co_await until(
          [awaited] { return awaited->wait_for(Nanoseconds(0)) == std::future_status::ready; });
      co_return result.get();
    });
    ASSERT_EQ(round_trip.get(), 2 * i);
  }
}

}  // namespace
}  // namespace perdura::host
