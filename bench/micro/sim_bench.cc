// Measures the real time that a simulated operation takes: every system on the model of the Erda
// paper's testbed, with one client and one operation in flight. `events` is the number of events
// that the engine processes per second of real time.
#include <benchmark/benchmark.h>

#include <optional>
#include <string>
#include <vector>

#include "platform/sim/sim_platform.h"
#include "services/kv/kv.h"
#include "systems/registry/registry.h"

namespace perdura::bench::micro {
namespace {

using kv::KvConfig;
using kv::KvSystem;

constexpr std::uint64_t kRecords = 1000;
constexpr Bytes kKeySize = 16;
constexpr Bytes kValueSize = 64;  // or the longest value that the system accepts

enum class Kind : std::uint8_t { get, put };

void write_key(std::uint64_t number, std::span<std::byte> key) {
  const std::uint64_t mixed = number * 0x9E3779B97F4A7C15;
  std::memcpy(key.data(), &number, sizeof number);
  std::memcpy(key.data() + sizeof number, &mixed, sizeof mixed);
}

// Puts all records, then cycles through them with the operations that the benchmark asks for.
Task<> client(Thread& thread, const KvSystem& system, KvConfig config, Kind kind,
              benchmark::State& state, const sim::Engine& engine) {
  const auto session = co_await system.connect(thread, {0, 0}, config);
  std::vector<std::byte> key(kKeySize);
  std::vector<std::byte> value(config.value_size, std::byte{0x5A});
  for (std::uint64_t i = 0; i < kRecords; ++i) {
    write_key(i, key);
    if (!co_await session->put(key, value)) state.SkipWithError("loading failed");
  }
  const std::uint64_t before = engine.fired();
  std::uint64_t next = 0;
  for ([[maybe_unused]] auto _ : state) {
    write_key(next, key);
    next = next + 1 == kRecords ? 0 : next + 1;
    if (kind == Kind::get) {
      const auto got = co_await session->get(key, value);
      if (!got || *got != value.size()) state.SkipWithError("a get failed");
    } else {
      const auto stored = co_await session->put(key, value);
      if (!stored) state.SkipWithError("a put failed");
    }
  }
  const auto events = static_cast<double>(engine.fired() - before);
  state.counters["events"] = benchmark::Counter(events, benchmark::Counter::kIsRate);
  state.counters["events/op"] = events / static_cast<double>(state.iterations());
}

void modelled(benchmark::State& state, const KvSystem& system, Kind kind, CompletionMode mode) {
  KvConfig config;
  config.key_size = kKeySize;
  config.value_size = system.fit_value(kValueSize);
  config.max_value_size = config.value_size;
  config.records = kRecords;
  config.writes = kRecords + (kind == Kind::put ? state.max_iterations : 0);
  config.sessions = 1;
  sim::SimPlatform platform(sim::load_profile(PERDURA_SOURCE_DIR "/profiles/erda-connectx3.toml"),
                            2);
  platform.start_service(0, 0, mode, [&](Thread& thread) -> Task<> {
    const auto partition = system.open(thread, "bench", config);
    co_await partition->serve();
  });
  platform.start(1, 0, mode, [&](Thread& thread) {
    return client(thread, system, config, kind, state, platform.engine());
  });
  platform.run();
}

[[maybe_unused]] const bool registered = [] {
  for (const KvSystem& system : systems::kv_systems()) {
    for (const Kind kind : {Kind::get, Kind::put}) {
      for (const CompletionMode mode : {CompletionMode::event, CompletionMode::polling}) {
        const std::string name = "modelled/" + std::string(system.name) +
                                 (kind == Kind::get ? "/get" : "/put") +
                                 (mode == CompletionMode::event ? "/event" : "/polling");
        benchmark::RegisterBenchmark(name.c_str(), [&system, kind, mode](benchmark::State& state) {
          modelled(state, system, kind, mode);
        });
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace perdura::bench::micro
