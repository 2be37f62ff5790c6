// Measures the harness' own overhead per operation: the real client on the real platform, with full
// histograms, on a store of almost no cost (bench/kv/null_store.h). The time of an item is that of
// one iteration of the closed loop: draw the operation, write its key, fill its value, read the
// clock, perform it, read the clock, verify what was read, record the latency. `store_ns` is the
// store's share, measured by calling it for the same mix without the harness; the rest,
// `harness_ns`, is the harness' cost. Both are CPU time.
//
// With several clients it is still the time of one iteration of one client. It stays constant as
// long as the clients share no data that they write and each has a core.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <numeric>
#include <vector>

#include "bench/client_server.h"
#include "bench/kv/kv_client.h"
#include "bench/kv/kv_parameters.h"
#include "bench/kv/null_store.h"
#include "bench/ycsb/generator.h"
#include "bench/ycsb/point_workload.h"
#include "platform/shm/shm_platform.h"
#include "services/kv/key_format.h"
#include "services/kv/partitioned.h"
#include "services/kv/value.h"

namespace perdura::bench::micro {
namespace {

using ycsb::OperationKind;

constexpr std::uint64_t kOperations = 200'000;  // operations of each client in one iteration
constexpr std::uint64_t kRecords = 1000;

harness::Point make_point(double reads, std::uint32_t value_size, std::uint64_t clients) {
  harness::Point point(kv_parameters());
  point.roles = bench::client_server(1);
  point.settings.set("clients", clients);
  ycsb::WorkloadSpec& spec = own_workload(point).spec;
  spec.record_count = kRecords;
  spec.operation_count = kOperations * clients;
  spec.request_distribution = ycsb::RequestDistribution::zipfian;
  spec.key_size = 16;
  spec.field_count = 1;
  spec.field_length = value_size;
  spec.proportions = {};
  spec.proportions[static_cast<std::size_t>(OperationKind::read)] = reads;
  spec.proportions[static_cast<std::size_t>(OperationKind::update)] = 1 - reads;
  return point;
}

struct Outcome {
  Picoseconds elapsed{};  // time of the slowest client
  Nanoseconds cpu{};      // CPU time of all clients together
  Nanoseconds store{};    // CPU time of the same number of operations without the harness
  Nanoseconds merging{};  // CPU time of merging the clients' measurements
  std::uint64_t operations = 0;
  harness::Verdict verdict = harness::Verdict::valid;
};

Nanoseconds thread_cpu_time() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + Nanoseconds(t.tv_nsec);
}

// The operations of a client, drawn and filled beforehand.
struct Prepared {
  OperationKind kind;
  std::array<std::byte, 16> key;
  std::vector<std::byte> value;
};

std::vector<Prepared> prepare(const harness::Point& point) {
  constexpr std::size_t kPrepared = 4096;
  ycsb::OperationGenerator generator(workload_of(point), point.seed, 0, 1);
  const kv::KeyFormat format = workload_of(point).key_format();
  std::vector<Prepared> operations(kPrepared);
  for (Prepared& prepared : operations) {
    const ycsb::WorkloadOperation operation = *generator.next();
    prepared.kind = operation.kind;
    format.write(operation.key_number, prepared.key);
    prepared.value.resize(operation.value_size);
    kv::fill_value(prepared.value, operation.key_number, operation.version);
  }
  return operations;
}

Task<Nanoseconds> without_harness(kv::KvSession& session, const harness::Point& point) {
  const std::vector<Prepared> operations = prepare(point);
  std::vector<std::byte> into(workload_of(point).max_value_size());
  const Nanoseconds before = thread_cpu_time();
  for (std::uint64_t i = 0; i < kOperations; ++i) {
    const Prepared& operation = operations[i % operations.size()];
    if (operation.kind == OperationKind::read) {
      benchmark::DoNotOptimize(co_await session.get(operation.key, into));
    } else {
      benchmark::DoNotOptimize(co_await session.put(operation.key, operation.value));
    }
  }
  co_return thread_cpu_time() - before;
}

Outcome run(const harness::Point& point, const harness::Point& loading, bool recorded = true) {
  const auto clients = static_cast<std::uint32_t>(point.settings.number("clients"));
  ShmPlatform platform(ShmOptions{});
  const auto barrier = platform.create_barrier(clients);
  std::atomic<bool> stop{false};
  std::vector<std::unique_ptr<KvClient>> measured(clients);
  std::vector<Nanoseconds> cpu(clients);
  std::vector<Nanoseconds> store(clients);
  for (std::uint32_t index = 0; index < clients; ++index) {
    platform.start(
        0, static_cast<fabric::Port>(index), CompletionMode::polling,
        [&, index](Thread&) -> Task<> {
          std::vector<std::unique_ptr<kv::KvSession>> partitions;
          partitions.push_back(
              std::make_unique<NullSession>(kRecords, workload_of(point).max_value_size()));
          kv::PartitionedSession session(std::move(partitions));
          // Each session is a store of its own and needs all records.
          KvClient loader(loading, 0, stop);
          co_await loader.load(session);
          measured[index] = std::make_unique<KvClient>(point, index, stop);
          store[index] = co_await without_harness(session, point);
          co_await barrier->arrive_and_wait();
          const Nanoseconds before = thread_cpu_time();
          co_await measured[index]->run(session, {.operations = kOperations, .measured = recorded});
          cpu[index] = thread_cpu_time() - before;
        });
  }
  platform.run();
  Outcome outcome;
  outcome.cpu = std::accumulate(cpu.begin(), cpu.end(), Nanoseconds{});
  outcome.store = std::accumulate(store.begin(), store.end(), Nanoseconds{});
  const Nanoseconds before_merging = thread_cpu_time();
  harness::Measurement whole;
  for (const auto& client : measured) whole.merge(client->measurement());
  benchmark::DoNotOptimize(whole);
  outcome.merging = thread_cpu_time() - before_merging;
  for (const auto& client : measured) {
    outcome.elapsed = std::max(outcome.elapsed, client->last_end() - client->first_start());
    outcome.operations += client->measurement().operations();
    outcome.verdict = std::max(outcome.verdict, client->measurement().verdict);
  }
  return outcome;
}

void null_store(benchmark::State& state, double reads) {
  const auto value_size = static_cast<std::uint32_t>(state.range(0));
  const auto clients = static_cast<std::uint64_t>(state.range(1));
  const harness::Point point = make_point(reads, value_size, clients);
  const harness::Point loading = make_point(reads, value_size, 1);
  double nanoseconds = 0;
  double cpu = 0;
  double store = 0;
  for (auto _ : state) {
    const Outcome outcome = run(point, loading);
    if (outcome.verdict != harness::Verdict::valid || outcome.operations != kOperations * clients) {
      state.SkipWithError("an operation failed, or a value did not verify");
      break;
    }
    const double seconds = static_cast<double>(outcome.elapsed.count()) * 1e-12;
    state.SetIterationTime(seconds);
    nanoseconds += seconds * 1e9;
    cpu += static_cast<double>(outcome.cpu.count());
    store += static_cast<double>(outcome.store.count());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kOperations * clients));
  const double turns = static_cast<double>(state.iterations() * kOperations);
  state.counters["ns/op"] = nanoseconds / turns;
  const double client_turns = turns * static_cast<double>(clients);
  // The same in CPU time, which excludes the time in which another process had the core.
  state.counters["cpu_ns/op"] = cpu / client_turns;
  state.counters["store_ns"] = store / client_turns;
  state.counters["harness_ns"] = (cpu - store) / client_turns;
}
BENCHMARK_CAPTURE(null_store, workloadc, 1.0)
    ->ArgNames({"value", "clients"})
    ->ArgsProduct({{8, 64}, {1, 2}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(null_store, workloada, 0.5)
    ->ArgNames({"value", "clients"})
    ->ArgsProduct({{8, 64}, {1, 2}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// Measures how much throughput it costs to record latencies and to merge them at the end: recorded
// iterations beside unrecorded ones, in CPU time, since the clients share the cores.
void recording(benchmark::State& state) {
  const auto clients = static_cast<std::uint64_t>(state.range(0));
  const harness::Point point = make_point(0.5, 64, clients);
  const harness::Point loading = make_point(0.5, 64, 1);
  double with = 0;
  double without = 0;
  double merging = 0;
  for (auto _ : state) {
    const Outcome recorded = run(point, loading, true);
    const Outcome unrecorded = run(point, loading, false);
    if (std::max(recorded.verdict, unrecorded.verdict) != harness::Verdict::valid) {
      state.SkipWithError("an operation failed, or a value did not verify");
      break;
    }
    with += static_cast<double>(recorded.cpu.count());
    without += static_cast<double>(unrecorded.cpu.count());
    merging += static_cast<double>(recorded.merging.count());
  }
  const auto turns = static_cast<double>(state.iterations() * kOperations * clients);
  state.counters["cpu_ns/op"] = with / turns;
  state.counters["unrecorded_ns/op"] = without / turns;
  state.counters["merging_ns/op"] = merging / turns;
  state.counters["percent"] = 100 * (with + merging - without) / (with + merging);
}
BENCHMARK(recording)->ArgName("clients")->Arg(1)->Arg(8)->UseRealTime()->Unit(
    benchmark::kMillisecond);

}  // namespace
}  // namespace perdura::bench::micro
