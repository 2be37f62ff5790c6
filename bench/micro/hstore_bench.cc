// Measures the cost of an operation on MCAS's storage engines hstore and hstore-cc in local mode:
// one thread, ordinary memory in place of persistent memory, every flush and fence executed. Keys
// have 16 bytes, values 16, which are inlined, or 64, which are in the heap. The arguments are the
// number of items and the size of values. The table has 128 entries at first, so inserting includes
// its growth. `recover` is a restart, in items per second: it recovers the table and the heap,
// which hstore reconstitutes from all items, and of which hstore-cc reads what is in use.
#include <benchmark/benchmark.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/micro/local_memory.h"
#include "systems/mcas/engines.h"
#include "systems/mcas/parameters.h"

namespace perdura::bench::micro {
namespace {

using kv::KvConfig;
using systems::Flushing;
using systems::mcas::Engine;
using systems::mcas::make_engine;
using systems::mcas::Parameters;
using systems::mcas::PutOutcome;
using systems::mcas::RegionAllocator;

constexpr std::uint64_t kPool = 1;

struct Local {
  Local(const char* name, std::uint64_t count, Bytes value)
      : engine_name(name),
        items(count),
        parameters(Parameters::of({.value_size = value,
                                   .max_value_size = value,
                                   .records = count,
                                   .parameters = {{"engine", name}}})),
        bytes(value),
        memory(parameters.extent().first + parameters.extent().size()),
        region("hstore", pmem::Medium::pm, memory.base(),
               parameters.extent().first + parameters.extent().size(), nullptr, nullptr) {
    open();
    regions->format();
    root = engine->create().value();
  }
  void open() {
    const systems::mcas::Memory lines(region, Flushing::lines);
    regions.emplace(lines, parameters.allocator_offset(), parameters.extent());
    engine = make_engine(parameters.kind, lines, *regions, kPool, parameters.engine);
  }
  void recover() {
    open();
    regions->recover();
    engine->recover(root);
  }
  static std::array<std::uint64_t, 2> key_of(std::uint64_t number) {
    return {number, number * 0x9E3779B97F4A7C15};
  }
  bool put(std::uint64_t number, std::uint64_t version) {
    const auto key = key_of(number);
    std::memcpy(bytes.data(), &version, sizeof version);
    for (;;) {
      const PutOutcome outcome = engine->put(std::as_bytes(std::span(key)), bytes);
      if (outcome != PutOutcome::must_grow) return outcome == PutOutcome::done;
      while (engine->grow_step()) {
      }
    }
  }
  bool get(std::uint64_t number) {
    const auto key = key_of(number);
    const auto range = engine->get(std::as_bytes(std::span(key)));
    if (range) region.read_unchanging(range->offset, bytes);
    return range.has_value();
  }
  bool erase(std::uint64_t number) {
    const auto key = key_of(number);
    return engine->erase(std::as_bytes(std::span(key)));
  }

  std::string engine_name;
  std::uint64_t items;
  Parameters parameters;
  std::vector<std::byte> bytes;  // a value
  Memory memory;
  pmem::Region region;
  std::optional<RegionAllocator> regions;
  std::unique_ptr<Engine> engine;
  Bytes root = 0;
};

// Returns a store in the requested state, empty or full: the last one used if it is in that state,
// else a new one.
Local& local(const char* engine, const benchmark::State& state, bool full) {
  static std::unique_ptr<Local> last;
  const auto items = static_cast<std::uint64_t>(state.range(0));
  const auto value = static_cast<Bytes>(state.range(1));
  const std::uint64_t wanted = full ? items : 0;
  const bool fits = last && last->engine_name == engine && last->items == items &&
                    last->bytes.size() == value && last->engine->statistics().items == wanted;
  if (fits) return *last;
  last.reset();
  last = std::make_unique<Local>(engine, items, value);
  for (std::uint64_t i = 0; i < wanted; ++i) last->put(scattered(i, items, Order::inserted), 0);
  return *last;
}

// measure() with operation(store, number, i).
template <class Operation>
void run(const char* engine, benchmark::State& state, bool full, Operation operation) {
  Local& store = local(engine, state, full);
  measure(state, store.items, full ? Order::other : Order::inserted,
          [&](std::uint64_t number, std::uint64_t i) { return operation(store, number, i); });
}

void insert(const char* engine, benchmark::State& state) {
  run(engine, state, false, [](Local& store, auto number, auto i) { return store.put(number, i); });
}
void hit(const char* engine, benchmark::State& state) {
  run(engine, state, true, [](Local& store, auto number, auto) { return store.get(number); });
}
void miss(const char* engine, benchmark::State& state) {
  run(engine, state, true,
      [](Local& store, auto number, auto) { return !store.get(store.items + number); });
}
void update(const char* engine, benchmark::State& state) {
  run(engine, state, true, [](Local& store, auto number, auto i) { return store.put(number, i); });
}
void erase(const char* engine, benchmark::State& state) {
  run(engine, state, true, [](Local& store, auto number, auto) { return store.erase(number); });
}
void recover(const char* engine, benchmark::State& state) {
  Local& store = local(engine, state, true);
  bool right = true;
  for ([[maybe_unused]] auto _ : state) {
    store.recover();
    right &= store.engine->statistics().items == store.items;
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  if (!right) state.SkipWithError("items are lost");
}

// Registers the benchmarks of each engine and size in this order, so that a store is filled only
// once.
const bool added = [] {
  for (const char* engine : {"hstore", "hstore-cc"}) {
    for (const std::int64_t items : {1 << 18, 1'000'000, 10'000'000}) {
      for (const std::int64_t value : {16, 64}) {
        const auto add = [&](const char* name, auto function, std::int64_t iterations) {
          const std::string full_name = std::string(engine) + "_" + name;
          benchmark::RegisterBenchmark(
              full_name.c_str(),
              [function, engine](benchmark::State& state) { function(engine, state); })
              ->Args({items, value})
              ->Iterations(iterations);
        };
        add("insert", insert, items);
        add("hit", hit, items);
        add("miss", miss, items);
        add("update", update, items);
        add("recover", recover, 3);
        add("erase", erase, items);
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace perdura::bench::micro
