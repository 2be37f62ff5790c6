// Measures the explorer of methods: crash images per second on one core, and the time for the whole
// taxonomy.
#include <benchmark/benchmark.h>

#include "methods/matrices.h"

namespace perdura::bench::micro {
namespace {

using methods::cells_matrix;
using methods::Configuration;
using methods::find_method;
using methods::Method;
using methods::prove;
using methods::steps_matrix;

void report_images(benchmark::State& state, std::uint64_t images) {
  state.counters["images/s"] =
      benchmark::Counter(static_cast<double>(images), benchmark::Counter::kIsRate);
}

void prove_method(benchmark::State& state, const char* name, const Configuration& configuration) {
  const Method& method = find_method(name);
  std::uint64_t images = 0;
  for (auto _ : state) images += prove(method, configuration).images;
  report_images(state, images);
}
constexpr Configuration kDmpDdio{{pmem::PersistenceDomain::dmp, true}, pmem::Medium::dram};
BENCHMARK_CAPTURE(prove_method, write_flush, "write-flush", kDmpDdio);
BENCHMARK_CAPTURE(prove_method, ordered_write_message, "ordered-write-message", kDmpDdio);
BENCHMARK_CAPTURE(prove_method, ordered_send_copy_flush, "ordered-send-copy-flush", kDmpDdio);

// Proves every cell of Tables 2 and 3, and each of them again without each of its steps.
void prove_taxonomy(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(cells_matrix());
    benchmark::DoNotOptimize(steps_matrix());
  }
}
BENCHMARK(prove_taxonomy)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace perdura::bench::micro
