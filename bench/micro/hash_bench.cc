// What an operation on a hash index costs in local mode: one thread, ordinary memory in the place
// of persistent memory, every flush and fence executed. Items in random order; the number at the
// end of a name is how many there are. Beside the time: flushes and fences an operation. What the
// stores change is not counted, which would need the memory's old contents.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "systems/continuity/index.h"
#include "systems/continuity/parameters.h"
#include "systems/level/index.h"
#include "systems/level/parameters.h"

namespace perdura {
namespace {

using systems::bucket_hash::Slot;

struct Continuity {
  using Index = systems::continuity::Index;
  using Parameters = systems::continuity::Parameters;
};
struct LevelHashing {
  using Index = systems::level::Index;
  using Parameters = systems::level::Parameters;
};

Slot item_of(std::uint64_t number, std::uint64_t value) {
  const std::uint64_t key[2] = {number, number * 0x9E3779B97F4A7C15};
  return Slot::of(std::as_bytes(std::span(key)), std::as_bytes(std::span(&value, 1)));
}

// Visits all numbers below `items` in an order that no prefetcher guesses: the factor is a prime.
std::uint64_t scattered(std::uint64_t i, std::uint64_t items) {
  return (i * 2'654'435'761U + 1) % items;
}

// Zeros, in huge pages where the kernel has them, as a mapped device would be; no page is touched
// for the first time while the clock runs.
class Memory {
 public:
  explicit Memory(Bytes size) : size_(round_up(size, kHugePage)) {
    void* memory = std::aligned_alloc(kHugePage, size_);
    if (memory == nullptr) throw std::bad_alloc();
    bytes_.reset(static_cast<std::byte*>(memory));
    madvise(memory, size_, MADV_HUGEPAGE);
    std::memset(memory, 0, size_);
  }
  std::byte* data() { return bytes_.get(); }

 private:
  static constexpr Bytes kHugePage = 2 * MiB;
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  Bytes size_;
  std::unique_ptr<std::byte, Free> bytes_;
};

// An index as a store has it for so many records, with all of them in it or none.
template <class System>
struct Local {
  Local(std::uint64_t item_count, bool full)
      : items(item_count),
        geometry(System::Parameters::of(
                     {.value_size = 8, .max_value_size = 15, .records = items, .parameters = {}})
                     .geometry),
        memory(geometry.size()),
        region("index", pmem::Medium::pm, memory.data(), geometry.size(), nullptr, nullptr),
        index(region, 0, geometry) {
    for (std::uint64_t i = 0; full && i < items; ++i) stored &= put(i, 0);
  }
  bool put(std::uint64_t i, std::uint64_t value) {
    return index.put(item_of(scattered(i, items), value)).has_value();
  }
  std::uint64_t items;
  decltype(System::Parameters::geometry) geometry;
  Memory memory;
  pmem::Region region;
  typename System::Index index;
  bool stored = true;
};

// Runs `operation(i)` for i from 0 on, which returns whether it did what it should.
template <class Operation>
void measure(benchmark::State& state, bool stored, Operation operation) {
  pmem::thread_write_meter().set_level(pmem::WriteMeter::Level::issued);
  const pmem::WriteCounts before = pmem::thread_write_meter().writes().local_store;
  std::uint64_t next = 0;
  bool right = stored;
  for ([[maybe_unused]] auto _ : state) right &= operation(next++);
  if (!right) state.SkipWithError("an operation failed");
  pmem::WriteCounts counts = pmem::thread_write_meter().writes().local_store;
  counts -= before;
  const auto each = benchmark::Counter::kAvgIterations;
  state.counters["flushes"] = benchmark::Counter(static_cast<double>(counts.flushes), each);
  state.counters["fences"] = benchmark::Counter(static_cast<double>(counts.fences), each);
  state.SetItemsProcessed(state.iterations());
}

std::uint64_t items_of(const benchmark::State& state) {
  return static_cast<std::uint64_t>(state.range(0));
}

template <class System>
void insert(benchmark::State& state) {
  Local<System> local(items_of(state), false);
  measure(state, true, [&](std::uint64_t i) { return local.put(i, 1); });
}

template <class System>
void update(benchmark::State& state) {
  Local<System> local(items_of(state), true);
  measure(state, local.stored, [&](std::uint64_t i) { return local.put(i % local.items, i); });
}

template <class System>
void erase(benchmark::State& state) {
  Local<System> local(items_of(state), true);
  measure(state, local.stored, [&](std::uint64_t i) {
    return local.index.erase(item_of(scattered(i, local.items), 0)).has_value();
  });
}

template <class System>
void find(benchmark::State& state, std::uint64_t first, bool expected) {
  const Local<System> local(items_of(state), true);
  measure(state, local.stored, [&](std::uint64_t i) {
    const Slot key = item_of(first + scattered(i, local.items), 0);
    return local.index.find(key).has_value() == expected;
  });
}
template <class System>
void hit(benchmark::State& state) {
  find<System>(state, 0, true);
}
template <class System>
void miss(benchmark::State& state) {
  find<System>(state, items_of(state), false);
}

constexpr std::int64_t kMillion = 1'000'000;
// Each item once.
constexpr auto kAllItems = [](auto* benchmark, std::int64_t items) {
  benchmark->Arg(items)->Iterations(items);
};

template <class System>
void add(const std::string& name) {
  for (const std::int64_t items : {kMillion / 4, kMillion, 10 * kMillion}) {
    kAllItems(benchmark::RegisterBenchmark((name + "_insert").c_str(), insert<System>), items);
    benchmark::RegisterBenchmark((name + "_update").c_str(), update<System>)->Arg(items);
    benchmark::RegisterBenchmark((name + "_hit").c_str(), hit<System>)->Arg(items);
    benchmark::RegisterBenchmark((name + "_miss").c_str(), miss<System>)->Arg(items);
    kAllItems(benchmark::RegisterBenchmark((name + "_erase").c_str(), erase<System>), items);
  }
}

const bool added = [] {
  add<Continuity>("continuity");
  add<LevelHashing>("level");
  return true;
}();

}  // namespace
}  // namespace perdura
