// Measures the cost of checking a history for linearizability, per operation.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <vector>

#include "bench/ycsb/zipfian.h"
#include "platform/base/random.h"
#include "services/kv/history/checker.h"

namespace perdura::bench::micro {
namespace {

using history::History;
using history::Kind;
using history::Operation;
using history::Outcome;

struct Mix {
  std::uint32_t clients = 16;
  std::uint64_t keys = 10'000;
  unsigned puts_of_100 = 50;
  unsigned erases_of_100 = 0;
};

// A history of a store that performs each operation at a random time between its start and its end.
// Clients are always busy; keys are Zipfian.
History linearizable_history(std::uint64_t operations, const Mix& mix) {
  Random random(1);
  const ycsb::Zipfian zipfian(mix.keys);
  struct Planned {
    Operation operation;
    Time moment;
  };
  std::vector<Planned> planned;
  for (std::uint32_t client = 0; client < mix.clients; ++client) {
    Time now{};
    for (std::uint64_t i = client; i < operations; i += mix.clients) {
      const std::uint64_t kind = random.uniform_below(100);
      Operation operation{.key = zipfian.next(random), .client = client, .outcome = Outcome::ok};
      operation.kind = kind < mix.puts_of_100                       ? Kind::put
                       : kind < mix.puts_of_100 + mix.erases_of_100 ? Kind::erase
                                                                    : Kind::get;
      if (operation.kind == Kind::put) operation.version = i + 1;
      operation.start = now + Nanoseconds(100);
      const auto length = static_cast<std::int64_t>(2000 + random.uniform_below(8000));
      operation.end = now = operation.start + Nanoseconds(length);
      const auto until = static_cast<std::int64_t>(random.uniform_below(length));
      planned.push_back({operation, operation.start + Nanoseconds(until)});
    }
  }
  std::vector<std::uint32_t> order(planned.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return planned[a].moment < planned[b].moment;
  });
  std::vector<std::uint64_t> contents(mix.keys);  // 0 if the key is absent
  for (const std::uint32_t index : order) {
    Operation& operation = planned[index].operation;
    std::uint64_t& content = contents[operation.key];
    if (operation.kind == Kind::put) {
      content = operation.version;
      continue;
    }
    if (content == 0) operation.outcome = Outcome::not_found;
    if (operation.kind == Kind::get) operation.version = content;
    if (operation.kind == Kind::erase) content = 0;
  }
  History history;
  history.reserve(planned.size());
  for (const Planned& one : planned) history.add(one.operation);
  return history;
}

void check(benchmark::State& state, const Mix& mix) {
  const History history = linearizable_history(static_cast<std::uint64_t>(state.range(0)), mix);
  for (auto _ : state) {
    const auto verdict = history::check(history);
    if (!verdict.accepted()) state.SkipWithError(describe(verdict).c_str());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void history_check(benchmark::State& state) { check(state, {}); }
BENCHMARK(history_check)->Arg(100'000)->Arg(4'000'000)->Unit(benchmark::kMillisecond);

void history_check_with_deletes(benchmark::State& state) {
  check(state, {.puts_of_100 = 40, .erases_of_100 = 10});
}
BENCHMARK(history_check_with_deletes)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

// All clients use one key: the maximal concurrency.
void history_check_of_one_key(benchmark::State& state) {
  check(state, {.clients = static_cast<std::uint32_t>(state.range(1)), .keys = 1});
}
BENCHMARK(history_check_of_one_key)
    ->Args({100'000, 16})
    ->Args({100'000, 64})
    ->Args({100'000, 256})
    ->Unit(benchmark::kMillisecond);

void history_check_of_one_key_with_deletes(benchmark::State& state) {
  check(state, {.clients = static_cast<std::uint32_t>(state.range(1)),
                .keys = 1,
                .puts_of_100 = 40,
                .erases_of_100 = 20});
}
BENCHMARK(history_check_of_one_key_with_deletes)
    ->Args({100'000, 4})
    ->Args({100'000, 16})
    ->Args({100'000, 64})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace perdura::bench::micro
