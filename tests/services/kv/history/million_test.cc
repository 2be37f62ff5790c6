// The checker of keys and the search of any specification agree on histories of a million
// operations, right ones and ones with a single wrong answer.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "services/kv/history/checker.h"
#include "services/kv/history/specification.h"

namespace perdura::history::test {
namespace {

constexpr std::size_t kOperations = 1'000'000;
constexpr std::uint32_t kBusyClients = 16;
constexpr std::uint64_t kKeys = 1000;

// What a store answers that performs each operation at a random moment between its start and end.
std::vector<Operation> operations_of_a_store(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::multimap<Time, Operation> by_effect;
  for (std::uint32_t client = 0; client < kBusyClients; ++client) {
    Time now{};
    for (std::size_t i = client; i < kOperations; i += kBusyClients) {
      const std::uint64_t kind = random() % 10;
      Operation operation{.key = random() % kKeys, .client = client, .outcome = Outcome::ok};
      operation.kind = kind < 5 ? Kind::get : kind < 9 ? Kind::put : Kind::erase;
      if (operation.kind == Kind::put) operation.version = i + 1;
      operation.start = now + Picoseconds(1);
      const auto length = static_cast<std::int64_t>(random() % 1000 + 1);
      operation.end = now = operation.start + Picoseconds(length);
      const auto effect = static_cast<std::int64_t>(random() % static_cast<unsigned>(length));
      by_effect.emplace(operation.start + Picoseconds(effect), operation);
    }
  }
  std::vector<std::uint64_t> contents(kKeys);  // 0: the key is absent
  std::vector<Operation> operations;
  for (auto& [when, operation] : by_effect) {
    std::uint64_t& content = contents[operation.key];
    if (operation.kind == Kind::put) {
      content = operation.version;
    } else {
      if (content == 0) operation.outcome = Outcome::not_found;
      if (operation.kind == Kind::get) operation.version = content;
      if (operation.kind == Kind::erase) content = 0;
    }
    operations.push_back(operation);
  }
  return operations;
}

// The keys whose operations have no valid order.
std::uint64_t violated_by_search(const std::vector<Operation>& operations) {
  std::vector<History> of_key(kKeys);
  for (const Operation& operation : operations) of_key[operation.key].add(operation);
  std::uint64_t violated = 0;
  for (const History& history : of_key) {
    const auto calls = services::calls_of(history);
    const auto verdict = check_linearizability(services::KeySpecification{}, std::span(calls));
    EXPECT_NE(verdict.decision, services::Linearizability::Decision::undecided);
    violated += verdict.accepted() ? 0 : 1;
  }
  return violated;
}

TEST(AMillionOperations, OfAStoreAreAccepted) {
  const std::vector<Operation> operations = operations_of_a_store(1);
  const CheckResult verdict = check(History(operations));
  EXPECT_TRUE(verdict.accepted()) << describe(verdict);
  EXPECT_EQ(verdict.operations, kOperations);
  EXPECT_EQ(violated_by_search(operations), 0U);
}

// A get returns a version that was replaced long before it began.
TEST(AMillionOperations, OneWrongAnswerIsFound) {
  std::vector<Operation> operations = operations_of_a_store(2);
  const std::uint64_t key = 7;
  const auto of_key = [&](const Operation& operation, Kind kind) {
    return operation.key == key && operation.kind == kind && operation.outcome == Outcome::ok;
  };
  const auto first_put = std::ranges::find_if(
      operations, [&](const Operation& operation) { return of_key(operation, Kind::put); });
  ASSERT_NE(first_put, operations.end());
  const auto last_get =
      std::find_if(operations.rbegin(), operations.rend(),
                   [&](const Operation& operation) { return of_key(operation, Kind::get); });
  ASSERT_NE(last_get, operations.rend());
  last_get->version = first_put->version;
  const CheckResult verdict = check(History(operations));
  ASSERT_EQ(verdict.keys_violated, 1U);
  EXPECT_EQ(verdict.violations.front().key, key);
  EXPECT_EQ(violated_by_search(operations), 1U);
}

}  // namespace
}  // namespace perdura::history::test
