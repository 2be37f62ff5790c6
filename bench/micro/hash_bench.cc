// What an operation on a hash index costs in local mode: one thread, ordinary memory in the place
// of persistent memory, every flush and fence executed. Items in random order.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "systems/continuity/index.h"

namespace perdura {
namespace {

using systems::bucket_hash::Slot;
using systems::continuity::Geometry;
using systems::continuity::Index;

constexpr std::uint64_t kItems = 1 << 18;

Slot item_of(std::uint64_t number, std::uint64_t value) {
  const std::uint64_t key[2] = {number, number * 0x9E3779B97F4A7C15};
  return Slot::of(std::as_bytes(std::span(key)), std::as_bytes(std::span(&value, 1)));
}

// Visits all numbers below kItems in an order that no prefetcher guesses.
std::uint64_t scattered(std::uint64_t i) { return i * 0x5851F42D4C957F2D % kItems; }

// A continuity hash table with kItems items or none: 40 % full, as a store has it.
struct Local {
  explicit Local(bool full)
      : geometry{kItems / 8, 3, 10, 0},
        memory(geometry.size() / kWord),
        region("index", pmem::Medium::pm, reinterpret_cast<std::byte*>(memory.data()),
               geometry.size(), nullptr, nullptr),
        index(region, 0, geometry) {
    for (std::uint64_t i = 0; full && i < kItems; ++i) stored &= put(i, 0);
  }
  bool put(std::uint64_t number, std::uint64_t value) {
    return index.put(item_of(number, value)).has_value();
  }
  Geometry geometry;
  std::vector<std::uint64_t> memory;
  pmem::Region region;
  Index index;
  bool stored = true;
};

void finish(benchmark::State& state, const Local& local, bool right) {
  if (!local.stored || !right) state.SkipWithError("an operation failed");
  state.SetItemsProcessed(state.iterations());
}

void continuity_insert(benchmark::State& state) {
  auto local = std::make_unique<Local>(false);
  std::uint64_t next = 0;
  bool right = true;
  for ([[maybe_unused]] auto _ : state) {
    if (next == kItems) {
      state.PauseTiming();
      local = std::make_unique<Local>(false);
      next = 0;
      state.ResumeTiming();
    }
    right &= local->put(scattered(next++), 1);
  }
  finish(state, *local, right);
}
BENCHMARK(continuity_insert);

void continuity_update(benchmark::State& state) {
  Local local(true);
  std::uint64_t next = 0;
  bool right = true;
  for ([[maybe_unused]] auto _ : state) {
    right &= local.put(scattered(next % kItems), next);
    ++next;
  }
  finish(state, local, right);
}
BENCHMARK(continuity_update);

void continuity_erase(benchmark::State& state) {
  auto local = std::make_unique<Local>(true);
  std::uint64_t next = 0;
  bool right = true;
  for ([[maybe_unused]] auto _ : state) {
    if (next == kItems) {
      state.PauseTiming();
      local = std::make_unique<Local>(true);
      next = 0;
      state.ResumeTiming();
    }
    right &= local->index.erase(item_of(scattered(next++), 0)).has_value();
  }
  finish(state, *local, right);
}
BENCHMARK(continuity_erase);

void find(benchmark::State& state, std::uint64_t from, bool expected) {
  const Local local(true);
  std::uint64_t next = 0;
  bool right = true;
  for ([[maybe_unused]] auto _ : state) {
    const auto found = local.index.find(item_of(from + scattered(next++ % kItems), 0));
    right &= found.has_value() == expected;
  }
  finish(state, local, right);
}
void continuity_hit(benchmark::State& state) { find(state, 0, true); }
void continuity_miss(benchmark::State& state) { find(state, kItems, false); }
BENCHMARK(continuity_hit);
BENCHMARK(continuity_miss);

}  // namespace
}  // namespace perdura
