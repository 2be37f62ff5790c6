// Histories of the library's clients while their shard is killed again and again, also while it
// recovers. What they call is not idempotent: nothing that was answered is lost, and nothing
// happens twice, whatever the library does to reach the shard again. There must be an order of all
// operations that explains each answer (services/linearizability.h).
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "services/linearizability.h"
#include "tests/library/mcas/support.h"
#include "tests/support/seed.h"

namespace perdura::library_test {
namespace {

using mcas::Client;
using mcas::Pool;
using mcas::Status;

// A key whose value is a number; nothing: it is not there.
struct Counter {
  using State = std::optional<std::uint64_t>;
  enum class Kind : std::uint8_t { put, get, erase, add, put_and_add };
  struct Operation {
    Kind kind = Kind::get;
    std::uint64_t put = 0;
    State found{};
  };
  State initial() const { return std::nullopt; }
  bool changes(const Operation& operation) const { return operation.kind != Kind::get; }
  // A call of a plugin has two parts, of which a failure may leave the first one: the value that it
  // creates or puts.
  std::vector<State> after(const State& state, const Operation& operation, bool answered) const {
    std::vector<State> first;
    State next = state;
    switch (operation.kind) {
      case Kind::put:
        return {operation.put};
      case Kind::erase:
        if (answered && operation.found.has_value() != state.has_value()) return {};
        return {std::nullopt};
      case Kind::add:
        if (!state) first.emplace_back(0);
        next = state.value_or(0) + 1;
        break;
      case Kind::put_and_add:
        first.emplace_back(operation.put);
        next = operation.put + 1;
        break;
      case Kind::get:
        break;
    }
    if (answered && operation.found != next) return {};
    if (answered) first.clear();
    first.push_back(next);
    return first;
  }
  std::vector<State> after_failure(const State& state) const { return {state}; }
};

using CounterCall = services::Call<Counter::Operation>;
constexpr std::size_t kCounters = 2;
constexpr std::size_t kThreads = 3;
constexpr int kCallsInALife = 60;  // of all threads
constexpr int kLives = 5;

// In its first word.
std::string text_of(std::uint64_t number) {
  std::string value(64, '\0');
  std::memcpy(value.data(), &number, sizeof number);
  return value;
}
std::uint64_t number_in(const std::string& value) {
  std::uint64_t number = 0;
  EXPECT_EQ(value.size(), 64U);
  std::memcpy(&number, value.data(), std::min(value.size(), sizeof number));
  return number;
}

class History {
 public:
  History(const Shards& shards, std::uint32_t seed) : shards_(shards), seed_(seed) {
    for (std::size_t i = 0; i < kThreads; ++i) {
      threads_.emplace_back([this, i] { work(i); });
    }
  }
  // Waits until so many more calls have ended.
  void go_on(int calls) {
    const int enough = ended_ + calls;
    EXPECT_TRUE(test::wait_until([&] { return ended_ >= enough; }));
  }
  // How many calls have no answer.
  std::size_t end_and_check() {
    stopping_ = true;
    for (std::thread& thread : threads_) thread.join();
    std::size_t unanswered = 0;
    for (std::size_t counter = 0; counter < kCounters; ++counter) {
      std::vector<CounterCall> all;
      for (const auto& of_thread : calls_) {
        all.insert(all.end(), of_thread[counter].begin(), of_thread[counter].end());
      }
      for (const CounterCall& call : all) unanswered += call.answered ? 0 : 1;
      EXPECT_TRUE(
          services::check_linearizability(Counter{}, std::span<const CounterCall>(all)).accepted())
          << "counter " << counter << ", " << all.size() << " calls";
    }
    return unanswered;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Time now() const {
    return Time{} + std::chrono::duration_cast<Nanoseconds>(Clock::now() - begin_);
  }

  void work(std::size_t thread) {
    std::mt19937_64 random(seed_ + thread);
    Client client(shards_.client());
    Pool pool = open(client);
    for (std::uint64_t i = 0; !stopping_; ++i) {
      const std::size_t counter = random() % kCounters;
      CounterCall call;
      call.operation.kind = static_cast<Counter::Kind>(random() % 5);
      call.operation.put = (thread + 1) << 32 | i << 12;
      call.start = now();
      const Status status = perform(pool, "counter " + std::to_string(counter), call.operation);
      call.end = now();
      call.answered = status == Status::ok || status == Status::not_found;
      EXPECT_TRUE(call.answered || status == Status::disconnected) << mcas::to_string(status);
      calls_[thread][counter].push_back(call);
      ++ended_;
    }
  }

  // The shard may have been killed before this thread had its turn.
  static Pool open(Client& client) {
    for (;;) {
      auto pool = client.open_pool("p", {.create_on_demand = true}, kPool);
      if (pool.status() != Status::disconnected) return std::move(pool.value());
    }
  }

  static Status perform(Pool& pool, const std::string& key, Counter::Operation& operation) {
    switch (operation.kind) {
      case Counter::Kind::put:
        return pool.put(key, text_of(operation.put)).status();
      case Counter::Kind::get: {
        auto got = pool.get(key);
        if (got.ok()) operation.found = number_in(got.value());
        return got.status();
      }
      case Counter::Kind::erase: {
        const Status erased = pool.erase(key).status();
        if (erased == Status::ok) operation.found = 0;
        return erased;
      }
      default: {
        auto answers =
            operation.kind == Counter::Kind::add
                ? pool.invoke(key, "add", 64, {.create_on_demand = true, .zero_new_value = true})
                : pool.invoke_put(key, "add", text_of(operation.put));
        if (answers.ok()) operation.found = std::stoull(answers.value().at(0));
        return answers.status();
      }
    }
  }

  const Shards& shards_;
  std::uint32_t seed_;
  Clock::time_point begin_ = Clock::now();
  std::atomic<bool> stopping_{false};
  std::atomic<int> ended_{0};
  std::array<std::array<std::vector<CounterCall>, kCounters>, kThreads> calls_;
  std::vector<std::thread> threads_;
};

class McasHistory : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, McasHistory, testing::Values("hstore", "hstore-cc"), name_of_engine);

TEST_P(McasHistory, OfCallsThatAreNotIdempotentIsLinearizableWhileShardsAreKilled) {
  const std::uint32_t seed = test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  Shards shards(1, with_plugin(PERDURA_TEST_PLUGIN, GetParam()));
  shards.start_all();
  History history(shards, seed);
  for (int life = 0; life < kLives; ++life) {
    history.go_on(static_cast<int>(kCallsInALife / 2 + random() % kCallsInALife));
    shards.kill(0);
    shards.start(0);
    if (random() % 2 == 0) continue;
    shards.kill(0);  // at whatever moment of its start
    shards.start(0);
  }
  history.go_on(kCallsInALife);
  EXPECT_GT(history.end_and_check(), 0U) << "no call was under way when a shard was killed";
}

}  // namespace
}  // namespace perdura::library_test
