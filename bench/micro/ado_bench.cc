// Calls of active data objects: from a shard to the process of a pool and back, through the two
// queues between them, with the plugin that answers what it is asked. "Pollers" need two idle
// cores; "sleepers" share one, so each call takes two switches of it.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "bench/micro/no_keys.h"
#include "platform/shm/shm_platform.h"
#include "systems/mcas/ado/host.h"
#include "systems/mcas/ado/program/program.h"

namespace perdura::systems::mcas::ado {
namespace {

constexpr const char* kMemory = "shard";

Task<> call(Thread& thread, benchmark::State* state, CompletionMode mode,
            std::vector<unsigned> cores) {
  const auto memory = thread.node.create_region(kMemory, MiB, pmem::Medium::pm);
  LaunchOptions options{.mode = mode};
  options.limits.cores = std::move(cores);
  if (::geteuid() != 0) options.limits.isolation = Isolation::none;
  const auto launcher = make_launcher(thread, std::move(options));
  LaunchOrder order{.pool = "0", .memory = kMemory, .parts = {{0, MiB}}, .plugins = {"passthru"}};
  const auto launched = co_await launcher->launch(std::move(order));
  NoKeys keys;
  const auto host = std::make_shared<Host>(thread, keys);
  co_await host->attach(launched->process());
  const std::string request(static_cast<std::size_t>(state->range(0)), 'r');
  for ([[maybe_unused]] auto _ : *state) {
    WorkMessage work{.key = "key", .request = request};
    const CompletionMessage completion = co_await host->work(std::move(work), LockMode::write);
    if (completion.status != WorkStatus::done) state->SkipWithError(completion.error.c_str());
  }
  launched->end();
}

void run(benchmark::State& state, CompletionMode mode, unsigned core_of_process) {
  ::setenv("PERDURA_PROGRAMS", PERDURA_PROGRAMS_FOLDER, 0);
  try {
    ShmOptions options;
    options.placements = {{.cores = {0}}};
    ShmPlatform platform(std::move(options));
    platform.start(0, 1, mode,
                   [&](Thread& thread) { return call(thread, &state, mode, {core_of_process}); });
    platform.run();
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
}

double least(const std::vector<double>& all) { return *std::min_element(all.begin(), all.end()); }

void ado_call_between_pollers(benchmark::State& state) { run(state, CompletionMode::polling, 1); }
BENCHMARK(ado_call_between_pollers)
    ->Arg(16)
    ->Arg(512)
    ->UseRealTime()
    ->ComputeStatistics("least", least);

void ado_call_between_sleepers_on_one_core(benchmark::State& state) {
  run(state, CompletionMode::event, 0);
}
BENCHMARK(ado_call_between_sleepers_on_one_core)
    ->Arg(16)
    ->UseRealTime()
    ->ComputeStatistics("least", least);

}  // namespace
}  // namespace perdura::systems::mcas::ado
