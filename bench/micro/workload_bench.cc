// Measures the parts of the harness' overhead per operation: drawing it, making its value, and
// recording its latency.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bench/ycsb/generator.h"
#include "bench/ycsb/zipfian.h"
#include "harness/measure/histogram.h"
#include "platform/base/random.h"
#include "services/kv/key_format.h"
#include "services/kv/value.h"

namespace perdura::bench::micro {
namespace {

constexpr std::uint64_t kItems = 1'000'000;

void random_draw(benchmark::State& state) {
  Random random(1);
  for (auto _ : state) benchmark::DoNotOptimize(random());
}
BENCHMARK(random_draw);

void uniform_draw(benchmark::State& state) {
  Random random(1);
  for (auto _ : state) benchmark::DoNotOptimize(random.uniform_below(kItems));
}
BENCHMARK(uniform_draw);

void plain_zipfian_draw(benchmark::State& state) {
  Random random(1);
  const ycsb::Zipfian zipfian(kItems);
  for (auto _ : state) benchmark::DoNotOptimize(zipfian.next(random));
}
BENCHMARK(plain_zipfian_draw);

void scrambled_zipfian_draw(benchmark::State& state) {
  Random random(1);
  const ycsb::ScrambledZipfian zipfian(kItems);
  for (auto _ : state) benchmark::DoNotOptimize(zipfian.next(random));
}
BENCHMARK(scrambled_zipfian_draw);

// theta = 0.7: 1 / (1 - theta) is no whole number, so each draw takes a logarithm and an
// exponential.
void zipfian_draw_by_pow(benchmark::State& state) {
  Random random(1);
  const ycsb::Zipfian zipfian(kItems, 0.7);
  for (auto _ : state) benchmark::DoNotOptimize(zipfian.next(random));
}
BENCHMARK(zipfian_draw_by_pow);

void zipfian_growth(benchmark::State& state) {
  ycsb::Zipfian zipfian(kItems);
  for (auto _ : state) {
    zipfian.set_items(zipfian.items() + 1);
    benchmark::DoNotOptimize(zipfian);
  }
}
BENCHMARK(zipfian_growth);

void zeta_of_100_million(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(ycsb::Zeta(0.99)(100'000'000));
}
BENCHMARK(zeta_of_100_million);

void key_write(benchmark::State& state) {
  const kv::KeyFormat format(static_cast<std::size_t>(state.range(0)), "user",
                             kv::InsertOrder::hashed);
  std::vector<std::byte> key(format.size());
  std::uint64_t number = 0;
  for (auto _ : state) {
    format.write(number++ & 0xffffff, key);
    benchmark::DoNotOptimize(key.data());
    benchmark::ClobberMemory();
  }
}
BENCHMARK(key_write)->Arg(8)->Arg(16)->Arg(24);

void operation_draw(benchmark::State& state) {
  ycsb::WorkloadSpec spec;
  spec.record_count = kItems;
  spec.proportions = {0.5, 0.5, 0, 0, 0, 0};
  spec.request_distribution = static_cast<ycsb::RequestDistribution>(state.range(0));
  state.SetLabel(std::string(to_string(spec.request_distribution)));
  ycsb::OperationGenerator generator(spec, 1, 0, 1);
  for (auto _ : state) benchmark::DoNotOptimize(generator.next());
}
BENCHMARK(operation_draw)
    ->Arg(static_cast<int>(ycsb::RequestDistribution::uniform))
    ->Arg(static_cast<int>(ycsb::RequestDistribution::zipfian))
    ->Arg(static_cast<int>(ycsb::RequestDistribution::plain_zipfian))
    ->Arg(static_cast<int>(ycsb::RequestDistribution::latest));

void value_fill(benchmark::State& state) {
  std::vector<std::byte> value(static_cast<std::size_t>(state.range(0)));
  std::uint64_t version = 0;
  for (auto _ : state) {
    kv::fill_value(value, 1, version++);
    benchmark::DoNotOptimize(value.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(value_fill)->Arg(8)->Arg(64)->Arg(1024)->Arg(4096);

void value_check(benchmark::State& state) {
  std::vector<std::byte> value(static_cast<std::size_t>(state.range(0)));
  kv::fill_value(value, 1, 1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(value.data());
    benchmark::ClobberMemory();
    benchmark::DoNotOptimize(kv::check_value(value, 1));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(value_check)->Arg(8)->Arg(64)->Arg(1024)->Arg(4096);

// Latencies with the distribution of a fast network: a few microseconds with a tail.
void histogram_record(benchmark::State& state) {
  Random random(1);
  std::vector<std::uint64_t> latencies(4096);
  for (std::uint64_t& latency : latencies)
    latency = 2000 + (random.uniform_below(1 << 20) >> random.uniform_below(16));
  measure::Histogram histogram;
  std::size_t next = 0;
  for (auto _ : state) {
    histogram.record(latencies[next++ % latencies.size()]);
    benchmark::ClobberMemory();
  }
  benchmark::DoNotOptimize(histogram);
}
BENCHMARK(histogram_record);

void histogram_merge(benchmark::State& state) {
  Random random(1);
  measure::Histogram part;
  for (int i = 0; i < 10'000; ++i) part.record(random.uniform_below(1'000'000));
  measure::Histogram whole;
  for (auto _ : state) {
    whole.merge(part);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(histogram_merge);

}  // namespace
}  // namespace perdura::bench::micro
