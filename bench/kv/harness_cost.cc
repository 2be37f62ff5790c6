#include "bench/kv/harness_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "bench/kv/kv_client.h"
#include "bench/kv/null_store.h"
#include "bench/ycsb/point_workload.h"
#include "platform/base/error.h"

namespace perdura::bench {
namespace {

constexpr std::uint64_t kBatches = 16;
constexpr std::uint64_t kMostOperations = 4096;
constexpr Bytes kMostBytes = 4 * MiB;  // written or read

// The point with the same operations on few records, so that cache misses of the store itself do
// not count.
harness::Point on_null_store(harness::Point point) {
  constexpr std::uint64_t kRecords = 512;
  ycsb::WorkloadSpec& spec = own_workload(point).spec;
  // Half of the keys are for loaded records, half for inserted ones.
  const std::uint64_t keys = spec.key_format().capacity() / 2;
  const std::uint64_t operations = std::min(
      keys,
      std::clamp(kMostBytes / (spec.max_value_size() + kCacheLine), kBatches, kMostOperations));
  const bool erases = spec.uses(ycsb::OperationKind::erase);
  spec.operation_count = operations / kBatches * kBatches;
  spec.insert_start = 0;
  spec.insert_count.reset();
  spec.record_count = erases ? operations : std::min(operations, kRecords);
  point.settings.set("clients", 1);
  point.settings.set("until_full", false);  // it never is
  // Each operation is due before the last has ended.
  if (point.settings.text("load") != "closed") {
    point.settings.set("offered_load", std::uint64_t{1} << 40);
  }
  point.timeline_interval = {};
  return point;
}

}  // namespace

Task<Picoseconds> harness_cost(const harness::Point& point) {
  const harness::Point measured = on_null_store(point);
  const std::uint64_t operations = workload_of(measured).operation_count;
  const bool inserts = workload_of(measured).uses(ycsb::OperationKind::insert);
  NullSession session(workload_of(measured).record_count + (inserts ? operations : 0),
                      workload_of(measured).max_value_size());
  std::atomic<bool> stop{false};
  KvClient client(measured, 0, stop);
  co_await client.load(session);
  const Executor& executor = Executor::current();
  Picoseconds least = Picoseconds::max();
  for (std::uint64_t batch = 0; batch < kBatches; ++batch) {
    co_await yield();
    const Time start = executor.now();
    co_await client.run(session, {.operations = operations / kBatches, .measured = true});
    least = std::min(least, executor.now() - start);
  }
  if (client.measurement().verdict != harness::Verdict::valid) {
    throw PlatformError(fmt::format("the cost of the harness could not be measured: {}",
                                    client.measurement().reason));
  }
  co_return least / static_cast<std::int64_t>(operations / kBatches);
}

}  // namespace perdura::bench
