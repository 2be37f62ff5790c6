// Memory and orders of accesses for benchmarks of indexes in local mode: one thread, and ordinary
// memory in place of persistent memory.
#pragma once

#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstdint>
#include <new>

#include "platform/base/units.h"
#include "platform/pmem/region.h"

namespace perdura::bench::micro {

// The i-th of `items` numbers, in an order that no prefetcher guesses. Items that were inserted in
// one order are looked up in the other, since their addresses may follow the order of insertion.
enum class Order : std::uint32_t { inserted = 2'654'435'761U, other = 3'266'489'917U };
inline std::uint64_t scattered(std::uint64_t i, std::uint64_t items, Order order) {
  // The factor is a prime, so every number comes once.
  return i * static_cast<std::uint32_t>(order) % items;
}

// Zeroed memory, in huge pages where the kernel has them, as a mapped device would be. All pages
// are populated in advance, so that page faults are not measured.
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

// Calls operation(number, i), which returns true if it was correct, for every number in scattered
// order, and reports time, flushes and fences. The bytes that stores change are not counted, since
// that would need the memory's old contents.
template <class Operation>
void measure(benchmark::State& state, std::uint64_t items, Order order, Operation operation) {
  pmem::thread_write_meter().set_level(pmem::WriteMeter::Level::issued);
  const pmem::WriteCounts before = pmem::thread_write_meter().writes().local_store;
  std::uint64_t i = 0;
  bool right = true;
  for ([[maybe_unused]] auto _ : state) {
    right &= operation(scattered(i, items, order), i + 1);
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

}  // namespace perdura::bench::micro
