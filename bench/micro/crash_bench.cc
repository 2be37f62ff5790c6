// Measures the exploration of systems, per second and core: runs of the whole history with a
// failure (`runs`), and images without repeating the history (`images`). docs/guarantees.md
// explains the numbers.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "explore/crash.h"
#include "systems/registry/registry.h"

namespace perdura::bench::micro {
namespace {

// The crash points that are tried, in the middle of each history.
constexpr std::uint64_t kFirst = 100;
constexpr std::uint64_t kLast = 227;

void explore(benchmark::State& state, const services::ServedSystem& system,
             std::optional<std::uint64_t> recoveries) {
  const sim::Profile profile =
      sim::load_profile(PERDURA_SOURCE_DIR "/profiles/erda-connectx3.toml");
  explore::CrashOptions options{.setup = {.model = {pmem::PersistenceDomain::dmp, false}}};
  options.first = kFirst;
  options.last = kLast;
  options.recoveries = recoveries;
  options.threads = 1;
  const auto rate = [](std::uint64_t count) {
    return benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsRate);
  };
  explore::ImageCoverage coverage;
  std::uint64_t runs = 0;
  std::uint64_t images = 0;
  for (auto _ : state) {
    const explore::CrashResult result = explore::explore_crashes(system, profile, options);
    if (result.coverage) coverage.add(*result.coverage);
    runs += result.runs;
    images += result.images;
  }
  if (recoveries) {
    state.counters["images/s"] = rate(coverage.covered);
    state.counters["recoveries/s"] = rate(coverage.recoveries);
    state.counters["sampled"] = static_cast<double>(coverage.sampled);
  } else {
    state.counters["images/s"] = rate(images);
    state.counters["runs/s"] = rate(runs);
  }
}

// The number of recoveries that are tried at a crash point with too many images to try all.
constexpr std::uint64_t kMostRecoveries = 100;

const bool kRegistered = [] {
  for (const services::ServedSystem& system : systems::all_systems()) {
    benchmark::RegisterBenchmark(
        fmt::format("runs/{}", system.info.name).c_str(),
        [system](benchmark::State& state) { explore(state, system, std::nullopt); })
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(
        fmt::format("images/{}", system.info.name).c_str(),
        [system](benchmark::State& state) { explore(state, system, kMostRecoveries); })
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace perdura::bench::micro
