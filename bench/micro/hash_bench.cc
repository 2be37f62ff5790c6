// Measures the cost of an operation on a hash index in local mode: one thread, ordinary memory in
// place of persistent memory, every flush and fence executed. Keys have 16 bytes and values 15, the
// order is random, and there are as many operations as items; their number is the argument. Besides
// the time, flushes and fences per operation are reported. How many bytes the stores change is not
// counted, since that would need the memory's old contents.
#include <benchmark/benchmark.h>

#include <memory>

#include "bench/micro/local_memory.h"
#include "systems/continuity/index.h"
#include "systems/continuity/parameters.h"
#include "systems/level/index.h"
#include "systems/level/parameters.h"
#include "systems/pfarm/index.h"
#include "systems/pfarm/parameters.h"

namespace perdura::bench::micro {
namespace {

using systems::Flushing;
using systems::bucket_hash::Readers;
using systems::bucket_hash::Slot;

struct Continuity {
  using Index = systems::continuity::Index;
  using Parameters = systems::continuity::Parameters;
};
struct LevelHashing {
  using Index = systems::level::Index;
  using Parameters = systems::level::Parameters;
};
struct PFarmKv {
  using Index = systems::pfarm::Index;
  using Parameters = systems::pfarm::Parameters;
};

// A key of 16 bytes and a value of 15.
Slot item_of(std::uint64_t number, std::uint64_t version) {
  constexpr std::uint64_t kLengths = 0xFF;
  return systems::bucket_hash::slot_of(
      {number, number * 0x9E3779B97F4A7C15, version, kLengths << 56 | number >> 8});
}

// An index of the size that a store gives it for this many records; it is never resized.
template <class System>
struct Local {
  explicit Local(std::uint64_t count)
      : items(count),
        geometry(System::Parameters::of({.value_size = 15,
                                         .max_value_size = 15,
                                         .records = count,
                                         .parameters = {{"resizes", 0}}})
                     .geometry),
        memory(geometry.size()),
        region("index", pmem::Medium::pm, memory.base(), geometry.size(), nullptr, nullptr),
        index(region, 0, geometry, Flushing::lines, Readers::none) {}
  bool put(std::uint64_t number, std::uint64_t version) {
    return index.put(item_of(number, version)).has_value();
  }
  std::uint64_t items;
  decltype(System::Parameters::geometry) geometry;
  Memory memory;
  pmem::Region region;
  typename System::Index index;
};

// The table that was used last, of any system: only one table is in memory at a time.
std::shared_ptr<void> last_table;
const void* last_owner = nullptr;

// Returns the table of the benchmark's size, empty or full. The table of the previous benchmark is
// used again if it is in the state that is asked for.
template <class System>
Local<System>& local(const benchmark::State& state, bool full) {
  static const char owner = 0;
  const auto items = static_cast<std::uint64_t>(state.range(0));
  const std::uint64_t wanted = full ? items : 0;
  auto* const last = last_owner == &owner ? static_cast<Local<System>*>(last_table.get()) : nullptr;
  if (last != nullptr && last->items == items && last->index.items() == wanted) return *last;
  last_table.reset();
  auto made = std::make_shared<Local<System>>(items);
  for (std::uint64_t i = 0; i < wanted; ++i) made->put(scattered(i, items, Order::inserted), 0);
  last_table = made;
  last_owner = &owner;
  return *made;
}

// measure() with operation(table, number, i).
template <class System, class Operation>
void run(benchmark::State& state, bool full, Operation operation) {
  Local<System>& table = local<System>(state, full);
  if (table.index.items() != (full ? table.items : 0)) return state.SkipWithError("not filled");
  measure(state, table.items, full ? Order::other : Order::inserted,
          [&](std::uint64_t number, std::uint64_t i) { return operation(table, number, i); });
}

template <class System>
void insert(benchmark::State& state) {
  run<System>(state, false, [](auto& table, std::uint64_t number, std::uint64_t version) {
    return table.put(number, version);
  });
}
template <class System>
void hit(benchmark::State& state) {
  run<System>(state, true, [](auto& table, std::uint64_t number, std::uint64_t) {
    return table.index.find(item_of(number, 0)).has_value();
  });
}
template <class System>
void miss(benchmark::State& state) {
  run<System>(state, true, [](auto& table, std::uint64_t number, std::uint64_t) {
    return !table.index.find(item_of(table.items + number, 0)).has_value();
  });
}
template <class System>
void update(benchmark::State& state) {
  run<System>(state, true, [](auto& table, std::uint64_t number, std::uint64_t version) {
    return table.put(number, version);
  });
}
template <class System>
void erase(benchmark::State& state) {
  run<System>(state, true, [](auto& table, std::uint64_t number, std::uint64_t) {
    return table.index.erase(item_of(number, 0)).has_value();
  });
}

// A baseline for the machine at present: dependent reads of cache lines in random order, in as much
// memory as a level hash table of this size has.
void memory_chase(benchmark::State& state) {
  constexpr std::uint64_t kBytesPerItem = 80;
  const std::uint64_t lines =
      static_cast<std::uint64_t>(state.range(0)) * kBytesPerItem / kCacheLine;
  const Memory memory(lines * kCacheLine);
  std::uint64_t read = 0;  // stays 0, since the memory contains zeros
  std::uint64_t i = 0;
  for ([[maybe_unused]] auto _ : state) {
    const std::uint64_t line = (++i + read) * 0x9E3779B97F4A7C15 % lines;
    benchmark::DoNotOptimize(read += static_cast<std::uint64_t>(memory.base()[line * kCacheLine]));
  }
  state.SetItemsProcessed(state.iterations());
}

// Registers the benchmarks of each size in this order, so that a table is filled only once.
template <class System>
void add(const std::string& system, std::int64_t items) {
  const auto add = [&](const char* operation, void (*function)(benchmark::State&)) {
    benchmark::RegisterBenchmark((system + operation).c_str(), function)
        ->Arg(items)
        ->Iterations(items);
  };
  add("_insert", insert<System>);
  add("_hit", hit<System>);
  add("_miss", miss<System>);
  add("_update", update<System>);
  add("_erase", erase<System>);
}

const bool added = [] {
  for (const std::int64_t items : {1 << 18, 1'000'000, 10'000'000, 50'000'000}) {
    benchmark::RegisterBenchmark("memory_chase", memory_chase)->Arg(items)->Iterations(items);
    add<Continuity>("continuity", items);
    add<LevelHashing>("level", items);
    add<PFarmKv>("p_farm", items);
  }
  return true;
}();

}  // namespace
}  // namespace perdura::bench::micro
