// What an operation on a hash index costs in local mode: one thread, ordinary memory in the place
// of persistent memory, every flush and fence executed and counted. Items in random order, in a
// table that is as full as a store has it with all records. PERDURA_HASH_ITEMS in the environment
// says how many, 262,144 if it is not there.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "systems/continuity/index.h"
#include "systems/continuity/parameters.h"
#include "systems/pfarm/index.h"
#include "systems/pfarm/parameters.h"

namespace perdura {
namespace {

using systems::bucket_hash::Slot;

std::uint64_t items() {
  static const std::uint64_t number = [] {
    const char* text = std::getenv("PERDURA_HASH_ITEMS");
    return text == nullptr ? std::uint64_t{1} << 18 : std::strtoull(text, nullptr, 10);
  }();
  return number;
}

Slot item_of(std::uint64_t number, std::uint64_t value) {
  const std::uint64_t key[2] = {number, number * 0x9E3779B97F4A7C15};
  return Slot::of(std::as_bytes(std::span(key)), std::as_bytes(std::span(&value, 1)));
}

// Visits all numbers below items() in an order that no prefetcher guesses: a prime that does not
// divide it.
std::uint64_t scattered(std::uint64_t i) { return i * 1'000'000'007 % items(); }

// The geometry that a store has by default.
template <class Parameters>
auto geometry_for(std::uint64_t records) {
  systems::KvConfig config;
  config.value_size = config.max_value_size = 8;
  config.records = records;
  config.parameters["resizes"] = 0;
  return Parameters::of(config).geometry;
}

// A design's index with all items or none.
template <class Index, class Parameters>
struct Local {
  explicit Local(bool full)
      : geometry(geometry_for<Parameters>(items())),
        memory(geometry.size() / kWord),
        region("index", pmem::Medium::pm, reinterpret_cast<std::byte*>(memory.data()),
               geometry.size(), nullptr, nullptr),
        index(region, 0, geometry) {
    for (std::uint64_t i = 0; full && i < items(); ++i) stored &= put(i, 0);
  }
  bool put(std::uint64_t number, std::uint64_t value) {
    return index.put(item_of(number, value)).has_value();
  }
  bool erase(std::uint64_t number) { return index.erase(item_of(number, 0)).has_value(); }
  decltype(geometry_for<Parameters>(0)) geometry;
  std::vector<std::uint64_t> memory;
  pmem::Region region;
  Index index;
  bool stored = true;
};
using Continuity = Local<systems::continuity::Index, systems::continuity::Parameters>;
using PFarm = Local<systems::pfarm::Index, systems::pfarm::Parameters>;

// A table with all items, which takes long to make, is left for the next benchmark.
template <class Design>
std::unique_ptr<Design>& left_full() {
  static std::unique_ptr<Design> table;
  return table;
}
template <class Design>
std::unique_ptr<Design> table_with_items(bool full) {
  if (full && left_full<Design>()) return std::move(left_full<Design>());
  return std::make_unique<Design>(full);
}

// Runs `operation(local, number)` for each item in turn, on a table that holds them all or none;
// when all had their turn and it `uses_up` the table, on a new one.
template <class Design, class Operation>
void run(benchmark::State& state, bool full, bool uses_up, Operation operation) {
  auto local = table_with_items<Design>(full);
  pmem::WriteCounts writes;
  const auto writes_so_far = [] { return pmem::thread_write_meter().writes().local_store; };
  pmem::WriteCounts before = writes_so_far();
  const auto count = [&] {
    pmem::WriteCounts more = writes_so_far();
    more -= before;
    writes += more;
  };
  std::uint64_t next = 0;
  bool right = local->stored;
  for ([[maybe_unused]] auto _ : state) {
    if (next == items()) {
      next = 0;
      if (uses_up) {
        state.PauseTiming();
        count();
        local.reset();
        local = table_with_items<Design>(full);
        before = writes_so_far();
        state.ResumeTiming();
      }
    }
    right &= operation(*local, scattered(next++));
  }
  count();
  if (!right) state.SkipWithError("an operation failed");
  state.SetItemsProcessed(state.iterations());
  const auto per_operation = [&](std::uint64_t number) {
    return benchmark::Counter(static_cast<double>(number), benchmark::Counter::kAvgIterations);
  };
  state.counters["flushes"] = per_operation(writes.flushes);
  state.counters["fences"] = per_operation(writes.fences);
  if (full && !uses_up) left_full<Design>() = std::move(local);
}

template <class Design>
void insert(benchmark::State& state) {
  run<Design>(state, false, true, [](Design& local, std::uint64_t i) { return local.put(i, 1); });
}
template <class Design>
void update(benchmark::State& state) {
  run<Design>(state, true, false, [](Design& local, std::uint64_t i) { return local.put(i, 1); });
}
template <class Design>
void erase(benchmark::State& state) {
  run<Design>(state, true, true, [](Design& local, std::uint64_t i) { return local.erase(i); });
}
template <class Design>
void hit(benchmark::State& state) {
  run<Design>(state, true, false, [](Design& local, std::uint64_t i) {
    return local.index.find(item_of(i, 0)).has_value();
  });
}
template <class Design>
void miss(benchmark::State& state) {
  run<Design>(state, true, false, [](Design& local, std::uint64_t i) {
    return !local.index.find(item_of(items() + i, 0)).has_value();
  });
}

BENCHMARK_TEMPLATE(hit, Continuity)->Name("continuity_hit");
BENCHMARK_TEMPLATE(miss, Continuity)->Name("continuity_miss");
BENCHMARK_TEMPLATE(update, Continuity)->Name("continuity_update");
BENCHMARK_TEMPLATE(erase, Continuity)->Name("continuity_erase");
BENCHMARK_TEMPLATE(insert, Continuity)->Name("continuity_insert");
BENCHMARK_TEMPLATE(hit, PFarm)->Name("p_farm_hit");
BENCHMARK_TEMPLATE(miss, PFarm)->Name("p_farm_miss");
BENCHMARK_TEMPLATE(update, PFarm)->Name("p_farm_update");
BENCHMARK_TEMPLATE(erase, PFarm)->Name("p_farm_erase");
BENCHMARK_TEMPLATE(insert, PFarm)->Name("p_farm_insert");

}  // namespace
}  // namespace perdura
