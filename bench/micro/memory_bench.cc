// Compares the accesses of `perdura probe` with reference loops on the same memory: a plain pointer
// chase, and loops like those of STREAM (McCalpin, 1995). The overhead of the probes must be
// negligible: the target is 5 %. Needs one idle core; the memory is far larger than the caches and
// in pages of 4 KiB.
#include <benchmark/benchmark.h>
#include <immintrin.h>
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <memory>
#include <new>

#include "bench/probe/access.h"
#include "platform/base/random.h"

namespace perdura::bench::micro {
namespace {

constexpr Bytes kSize = 256 * MiB;

class Memory {
 public:
  Memory() {
    void* const base =
        mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) throw std::bad_alloc();
    madvise(base, kSize, MADV_NOHUGEPAGE);
    std::memset(base, 1, kSize);
    // As in perdura probe: writes are counted without reading the bytes that they replace.
    pmem::thread_write_meter().set_level(pmem::WriteMeter::Level::issued);
    region = std::make_unique<pmem::Region>("bench", pmem::Medium::pm,
                                            static_cast<std::byte*>(base), kSize, nullptr, nullptr);
  }
  ~Memory() { munmap(region->data(), kSize); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::unique_ptr<pmem::Region> region;
};

pmem::Region& memory() {
  static Memory memory;
  return *memory.region;
}

// Cycles through all lines: each holds the address of the next one.
void** write_pointers() {
  constexpr std::uint64_t kLines = kSize / kCacheLine;
  std::vector<std::uint32_t> order(kLines);
  for (std::uint32_t i = 0; i < kLines; ++i) order[i] = i;
  Random random(1);
  for (std::uint64_t i = kLines - 1; i > 0; --i) {  // the shuffle of Fisher and Yates
    std::swap(order[i], order[random.uniform_below(i + 1)]);
  }
  std::byte* const base = memory().data();
  const auto place = [&](std::uint64_t i) {
    return reinterpret_cast<void**>(base + order[i % kLines] * kCacheLine);
  };
  for (std::uint64_t i = 0; i < kLines; ++i) *place(i) = place(i + 1);
  return place(0);
}

constexpr int kLoads = 1000;  // loads in one iteration

void chase_plain(benchmark::State& state) {
  void** at = write_pointers();
  for (auto _ : state) {
    for (int i = 0; i < kLoads; ++i) at = static_cast<void**>(*at);
    benchmark::DoNotOptimize(at);
  }
  state.SetItemsProcessed(state.iterations() * kLoads);
}
BENCHMARK(chase_plain)->UseRealTime();

void chase_probe(benchmark::State& state) {
  write_chain(memory(), kSize, Pattern::random);
  Bytes at = 0;
  for (auto _ : state) {
    at = follow_cold_chain(memory(), at, kLoads);
    benchmark::DoNotOptimize(at);
  }
  state.SetItemsProcessed(state.iterations() * kLoads);
}
BENCHMARK(chase_probe)->UseRealTime();

// Sets the bytes that are processed, for bandwidths: an iteration passes over all of the memory.
void set_bytes(benchmark::State& state, Bytes bytes) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

// Each access covers `size` bytes and has a sum of its own, as in a probe.
void read_stream(benchmark::State& state) {
  const auto size = static_cast<std::size_t>(state.range(0));
  const auto* const words = reinterpret_cast<const std::uint64_t*>(memory().data());
  for (auto _ : state) {
    for (std::size_t from = 0; from < kSize / kWord; from += size / kWord) {
      // One sum for each word of a line, so that no addition waits for another.
      std::array<std::uint64_t, 8> sums{};
      for (std::size_t i = from; i < from + size / kWord; i += sums.size()) {
        for (std::size_t word = 0; word < sums.size(); ++word) sums[word] += words[i + word];
      }
      benchmark::DoNotOptimize(sums);
    }
  }
  set_bytes(state, kSize);
}
BENCHMARK(read_stream)->Arg(256)->Arg(4096)->UseRealTime();

// A fence follows each access.
void fill_stream(benchmark::State& state) {
  const auto size = static_cast<std::size_t>(state.range(0));
  auto* const lines = reinterpret_cast<__m128i*>(memory().data());
  const __m128i value = _mm_set1_epi64x(state.max_iterations);
  for (auto _ : state) {
    for (std::size_t from = 0; from < kSize / sizeof value; from += size / sizeof value) {
      for (std::size_t i = from; i < from + size / sizeof value; ++i) {
        _mm_stream_si128(lines + i, value);
      }
      _mm_sfence();
    }
  }
  set_bytes(state, kSize);
}
BENCHMARK(fill_stream)->Arg(256)->Arg(4096)->Arg(kSize)->UseRealTime();

// Copies one half to the other, a word at a time. Both directions count, as in STREAM.
void copy_stream(benchmark::State& state) {
  const auto* const from = reinterpret_cast<const std::uint64_t*>(memory().data());
  auto* const to = reinterpret_cast<std::uint64_t*>(memory().data() + kSize / 2);
  for (auto _ : state) {
    for (std::size_t i = 0; i < kSize / 2 / kWord; ++i) {
      to[i] = from[i];
      // Otherwise the compiler calls memcpy, which uses streaming stores.
      asm volatile("" : : : "memory");
    }
  }
  set_bytes(state, kSize);
}
BENCHMARK(copy_stream)->UseRealTime();

void access_probe(benchmark::State& state, Access access) {
  const auto size = static_cast<Bytes>(state.range(0));
  for (auto _ : state) {
    std::uint64_t sum = 0;
    Offsets offsets(Pattern::sequential, kSize, size);
    for (Bytes done = 0; done < kSize; done += size) {
      sum += access_memory(memory(), access, offsets.next(), size);
    }
    benchmark::DoNotOptimize(sum);
  }
  set_bytes(state, kSize);
}
BENCHMARK_CAPTURE(access_probe, load, Access::load)->Arg(256)->Arg(4096)->UseRealTime();
BENCHMARK_CAPTURE(access_probe, ntstore, Access::ntstore)
    ->Arg(256)
    ->Arg(4096)
    ->Arg(kSize)
    ->UseRealTime();

void copy_probe(benchmark::State& state) {
  std::array<std::byte, 256> piece{};
  for (auto _ : state) {
    for (Bytes at = 0; at < kSize / 2; at += piece.size()) {
      memory().read(at, piece);
      memory().write(kSize / 2 + at, piece);
    }
  }
  set_bytes(state, kSize);
}
BENCHMARK(copy_probe)->UseRealTime();

}  // namespace
}  // namespace perdura::bench::micro
