// Measures the exploration of systems, per second and core: whole runs, as where the servers'
// processes die (`runs`), and images without repeating the history (`images`). docs/guarantees.md
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
             explore::FailureKind failure, std::uint64_t recoveries) {
  const sim::Profile profile =
      sim::load_profile(PERDURA_SOURCE_DIR "/profiles/erda-connectx3.toml");
  explore::CrashOptions options{.setup = {.model = {pmem::PersistenceDomain::dmp, false}}};
  options.first = kFirst;
  options.last = kLast;
  options.fails.kind = failure;
  options.recoveries = recoveries;
  options.threads = 1;
  explore::ImageCoverage coverage;
  for (auto _ : state) {
    coverage.add(explore::explore_crashes(system, profile, options).coverage);
  }
  const auto rate = [](std::uint64_t count) {
    return benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsRate);
  };
  state.counters["images/s"] = rate(coverage.covered);
  state.counters["recoveries/s"] = rate(coverage.recoveries);
  state.counters["sampled"] = static_cast<double>(coverage.sampled);
}

// The number of recoveries that are tried at a crash point with too many images to try all.
constexpr std::uint64_t kMostRecoveries = 100;

const bool kRegistered = [] {
  for (const services::ServedSystem& system : systems::all_systems()) {
    benchmark::RegisterBenchmark(fmt::format("runs/{}", system.info.name).c_str(),
                                 [system](benchmark::State& state) {
                                   explore(state, system, explore::FailureKind::process, 1);
                                 })
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(fmt::format("images/{}", system.info.name).c_str(),
                                 [system](benchmark::State& state) {
                                   explore(state, system, explore::FailureKind::power,
                                           kMostRecoveries);
                                 })
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace perdura::bench::micro
