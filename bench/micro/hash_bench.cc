// What an operation on a hash index costs in local mode: one thread, ordinary memory in the place
// of persistent memory, every flush and fence executed. Keys of 16 bytes and values of 15, in
// random order, as many operations as items; the argument is how many.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <memory>
#include <new>

#include "systems/continuity/index.h"

namespace perdura {
namespace {

using systems::bucket_hash::Slot;
using systems::continuity::Geometry;
using systems::continuity::Index;

constexpr std::int64_t kSizes[] = {1 << 18, 1'000'000, 10'000'000, 50'000'000};

Slot item_of(std::uint64_t number, std::uint64_t version) {
  const std::uint64_t key[2] = {number, number * 0x9E3779B97F4A7C15};
  const std::uint64_t value[2] = {version, number >> 8};
  return Slot::of(std::as_bytes(std::span(key)), std::as_bytes(std::span(value)).first(15));
}

// The i-th of `items` numbers, in an order that no prefetcher guesses.
std::uint64_t scattered(std::uint64_t i, std::uint64_t items) {
  return i * 2654435761 % items;  // a prime: every number once
}

// Memory that is there: page faults are not what is measured.
class Memory {
 public:
  explicit Memory(Bytes size) : size_(size) {
    void* const base =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<std::byte*>(base);
    madvise(base_, size, MADV_HUGEPAGE);
    for (Bytes at = 0; at < size; at += 4 * KiB) base_[at] = std::byte{0};
  }
  ~Memory() { munmap(base_, size_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::byte* base() const { return base_; }

 private:
  std::byte* base_;
  Bytes size_;
};

// A continuity hash table of a size: with all items 40 % full, as a store has it.
struct Local {
  explicit Local(std::uint64_t count)
      : items(count),
        geometry{count / 8, 3, 10, 0},
        memory(geometry.size()),
        region("index", pmem::Medium::pm, memory.base(), geometry.size(), nullptr, nullptr),
        index(region, 0, geometry) {}
  bool put(std::uint64_t number, std::uint64_t version) {
    return index.put(item_of(number, version)).has_value();
  }
  std::uint64_t items;
  Geometry geometry;
  Memory memory;
  pmem::Region region;
  Index index;
};

// The table of this size, empty or full. Only one at a time is in memory, and benchmarks that need
// it as another one left it do not fill it again.
Local& local(const benchmark::State& state, bool full) {
  static std::unique_ptr<Local> current;
  const auto items = static_cast<std::uint64_t>(state.range(0));
  const std::uint64_t wanted = full ? items : 0;
  if (!current || current->items != items || current->index.items() != wanted) {
    current.reset();
    current = std::make_unique<Local>(items);
    for (std::uint64_t i = 0; i < wanted; ++i) current->put(scattered(i, items), 0);
  }
  pmem::thread_write_meter().set_level(pmem::WriteMeter::Level::issued);
  return *current;
}

// `operation(table, number, i)` for every number in scattered order.
template <class Operation>
void run(benchmark::State& state, bool full, Operation operation) {
  Local& table = local(state, full);
  const pmem::WriteCounts before = pmem::thread_write_meter().writes().local_store;
  std::uint64_t i = 0;
  bool right = true;
  for ([[maybe_unused]] auto _ : state) {
    right &= operation(table, scattered(i, table.items), i + 1);
    ++i;
  }
  pmem::WriteCounts writes = pmem::thread_write_meter().writes().local_store;
  writes -= before;
  const auto each = [&](std::uint64_t count) {
    return benchmark::Counter(static_cast<double>(count), benchmark::Counter::kAvgIterations);
  };
  state.counters["flushes"] = each(writes.flushes);
  state.counters["fences"] = each(writes.fences);
  state.SetItemsProcessed(state.iterations());
  if (!right) state.SkipWithError("an operation failed");
}

void continuity_insert(benchmark::State& state) {
  run(state, false, [](Local& table, std::uint64_t number, std::uint64_t version) {
    return table.put(number, version);
  });
}
void continuity_hit(benchmark::State& state) {
  run(state, true, [](Local& table, std::uint64_t number, std::uint64_t) {
    return table.index.find(item_of(number, 0)).has_value();
  });
}
void continuity_miss(benchmark::State& state) {
  run(state, true, [](Local& table, std::uint64_t number, std::uint64_t) {
    return !table.index.find(item_of(table.items + number, 0)).has_value();
  });
}
void continuity_update(benchmark::State& state) {
  run(state, true, [](Local& table, std::uint64_t number, std::uint64_t version) {
    return table.put(number, version);
  });
}
void continuity_erase(benchmark::State& state) {
  run(state, true, [](Local& table, std::uint64_t number, std::uint64_t) {
    return table.index.erase(item_of(number, 0)).has_value();
  });
}

// In this order for each size, so that a table is filled once.
const bool registered = [] {
  for (const std::int64_t items : kSizes) {
    const auto add = [items](const char* name, void (*function)(benchmark::State&)) {
      benchmark::RegisterBenchmark(name, function)->Arg(items)->Iterations(items);
    };
    add("continuity_insert", continuity_insert);
    add("continuity_hit", continuity_hit);
    add("continuity_miss", continuity_miss);
    add("continuity_update", continuity_update);
    add("continuity_erase", continuity_erase);
  }
  return true;
}();

}  // namespace
}  // namespace perdura
