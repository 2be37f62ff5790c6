// Measures calls of active data objects, with a plugin that answers with its input.
//
// - ado_call: from a shard to the process of a pool and back, through the two queues between them.
//   "Pollers" need two idle cores; "sleepers" share one, so each call takes two switches of it.
// - ado_call_beyond_get: the additional time of a client's call of a plugin over a get by the same
//   client, in turn: median and least, in nanoseconds. The client is a task of the shard's thread,
//   so this also needs two idle cores, and no more.
// - replicated_put: the time of a client's put that the plugin `replicate` copies to another shard
//   before it is answered, in turn with a put of the same client at that other shard, which has no
//   plugins. All sleep when they wait; client and shard share a thread, the other shard and the
//   process of plugins the other core.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "bench/micro/no_keys.h"
#include "platform/base/error.h"
#include "platform/shm/shm_platform.h"
#include "systems/mcas/ado/host.h"
#include "systems/mcas/ado/program/program.h"
#include "systems/mcas/mcas.h"
#include "systems/mcas/shard.h"

namespace perdura::bench::micro {
namespace {

using systems::kMcasObjects;
using systems::mcas::Parameters;
using systems::mcas::Shard;
using systems::mcas::ado::CompletionMessage;
using systems::mcas::ado::Host;
using systems::mcas::ado::LaunchOptions;
using systems::mcas::ado::LaunchOrder;
using systems::mcas::ado::LockMode;
using systems::mcas::ado::make_launcher;
using systems::mcas::ado::WorkMessage;
using systems::mcas::ado::WorkStatus;

constexpr const char* kMemory = "shard";
constexpr fabric::Port kShardPort = 1;

constexpr NodeId kPeerNode = 1;
constexpr std::array kKey{std::byte{'k'}};

using Nanos = std::chrono::duration<double, std::nano>;
std::chrono::steady_clock::time_point now() { return std::chrono::steady_clock::now(); }

double least(const std::vector<double>& all) { return *std::min_element(all.begin(), all.end()); }

// Reports the median and the least value.
void report(benchmark::State& state, const std::string& name, std::vector<double> all) {
  const auto median = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), median, all.end());
  state.counters[name] = *median;
  state.counters[name + "_least"] = least(all);
}

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
    const CompletionMessage completion = co_await host->work(work, LockMode::write);
    if (completion.status != WorkStatus::done) state->SkipWithError(completion.error.c_str());
  }
  launched->end();
}

// Connects a client to a shard on the same thread; the shard's plugin processes wait in this mode.
Task<std::unique_ptr<objects::Session>> connect_to_own_shard(Thread& thread,
                                                             GivenParameters parameters,
                                                             CompletionMode mode) {
  const objects::Config config{.memory = 64 * MiB,
                               .max_message_value = KiB,
                               .sessions = 1,
                               .parameters = std::move(parameters)};
  LaunchOptions options{.mode = mode};
  options.limits.cores = {1};
  if (::geteuid() != 0) options.limits.isolation = Isolation::none;
  const auto shard = std::make_shared<Shard>(thread, kMemory, Parameters::of(config),
                                             make_launcher(thread, std::move(options)));
  thread.executor.spawn(shard->serve());
  co_return co_await kMcasObjects.connect(thread, {thread.node.id(), kShardPort}, config);
}

Task<> call_beyond_get(Thread& thread, benchmark::State* state) {
  GivenParameters parameters{{"plugins", std::string("passthru")}};
  const auto session =
      co_await connect_to_own_shard(thread, std::move(parameters), CompletionMode::polling);
  const auto pool = (co_await session->create_pool("pool", 32 * MiB, {})).value();
  const std::vector<std::byte> text(static_cast<std::size_t>(state->range(0)));
  std::array<std::byte, KiB> value;
  if (!co_await pool->put(kKey, text, {})) throw PlatformError("a put has failed");
  std::vector<double> gets;
  std::vector<double> calls;
  std::vector<double> beyond;
  for ([[maybe_unused]] auto _ : *state) {
    const auto begin = now();
    const auto got = co_await pool->get(kKey, value);
    const auto middle = now();
    const auto answers = co_await pool->invoke(kKey, text, 0, {});
    const auto end = now();
    if (!got || !answers) state->SkipWithError("a get or a call has failed");
    gets.push_back(Nanos(middle - begin).count());
    calls.push_back(Nanos(end - middle).count());
    beyond.push_back(calls.back() - gets.back());
  }
  report(*state, "get", gets);
  report(*state, "call", calls);
  report(*state, "beyond", beyond);
}

Task<> replicated_put(Thread& thread, benchmark::State* state) {
  GivenParameters parameters{{"plugins", std::string("replicate")},
                             {"plugin_signals", true},
                             {"plugin_consent", true},
                             {"plugin_peer", std::uint64_t{kPeerNode}}};
  const auto session =
      co_await connect_to_own_shard(thread, std::move(parameters), CompletionMode::event);
  const auto peer = co_await kMcasObjects.connect(thread, {kPeerNode, 0}, {});
  const auto pool = (co_await session->create_pool("pool", 32 * MiB, {})).value();
  const auto plain = (co_await peer->create_pool("plain", 16 * MiB, {})).value();
  const std::vector<std::byte> value(static_cast<std::size_t>(state->range(0)));
  std::vector<double> puts;
  std::vector<double> replicated;
  for ([[maybe_unused]] auto _ : *state) {
    const auto begin = now();
    const auto put = co_await plain->put(kKey, value, {});
    const auto middle = now();
    const auto copied = co_await pool->put(kKey, value, {});
    const auto end = now();
    if (!put || !copied) state->SkipWithError("a put has failed");
    puts.push_back(Nanos(middle - begin).count());
    replicated.push_back(Nanos(end - middle).count());
  }
  report(*state, "plain", puts);
  report(*state, "replicated", replicated);
}

void run(benchmark::State& state, CompletionMode mode, const Platform::Body& body,
         const Platform::Body& peer = nullptr) {
  ::setenv("PERDURA_PROGRAMS", PERDURA_PROGRAMS_FOLDER, 0);
  try {
    ShmOptions options;
    options.node_count = 2;
    options.placements = {{.cores = {0}}, {.cores = {1}}};
    ShmPlatform platform(std::move(options));
    if (peer) platform.start_service(kPeerNode, 0, mode, peer);
    platform.start(0, kShardPort, mode, body);
    platform.run();
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
}

void run_calls(benchmark::State& state, CompletionMode mode, unsigned core_of_process) {
  run(state, mode, [&](Thread& thread) { return call(thread, &state, mode, {core_of_process}); });
}

void ado_call_between_pollers(benchmark::State& state) {
  run_calls(state, CompletionMode::polling, 1);
}
BENCHMARK(ado_call_between_pollers)
    ->Arg(16)
    ->Arg(512)
    ->UseRealTime()
    ->ComputeStatistics("least", least);

void ado_call_between_sleepers_on_one_core(benchmark::State& state) {
  run_calls(state, CompletionMode::event, 0);
}
BENCHMARK(ado_call_between_sleepers_on_one_core)
    ->Arg(16)
    ->UseRealTime()
    ->ComputeStatistics("least", least);

void ado_call_beyond_get(benchmark::State& state) {
  run(state, CompletionMode::polling,
      [&](Thread& thread) { return call_beyond_get(thread, &state); });
}
BENCHMARK(ado_call_beyond_get)->Arg(16)->Arg(512)->UseRealTime();

void ado_replicated_put(benchmark::State& state) {
  run(
      state, CompletionMode::event, [&](Thread& thread) { return replicated_put(thread, &state); },
      [](Thread& thread) -> Task<> {
        const objects::Config config{.memory = 64 * MiB, .max_message_value = KiB, .sessions = 2};
        const auto peer = std::make_shared<Shard>(thread, "peer", Parameters::of(config));
        co_await peer->serve();
      });
}
BENCHMARK(ado_replicated_put)->Arg(16)->Arg(512)->UseRealTime();

}  // namespace
}  // namespace perdura::bench::micro
