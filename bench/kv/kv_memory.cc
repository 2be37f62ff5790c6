// What a point takes of this machine's memory where one process is all of its nodes.
#include "bench/kv/kv_driver.h"

namespace perdura::bench {
namespace {

// Estimates: rounded up from the memory that processes took on sim with a thousand and with ten
// thousand clients of Erda (docs/performance.md, "Many clients"), measured once. Data counts where
// it is in the store, in its log, and as what a change replaced.
constexpr Bytes kProcess = 48 * MiB;
constexpr Bytes kPartition = 2 * MiB;
constexpr Bytes kClient = 64 * KiB;      // with its thread, its generator and its histograms
constexpr Bytes kSession = 24 * KiB;     // on both sides
constexpr Bytes kBuffersOfSession = 48;  // that a session uses in turn
constexpr Bytes kCopies = 3;             // of each record that is written
constexpr Bytes kOverhead = 64;          // of such a copy, and of a buffer
constexpr Bytes kOperationOfHistory = 128;
constexpr Bytes kOperationOfTimeline = 32;

}  // namespace

std::optional<Bytes> KvDriver::memory(const harness::Point& point) const {
  const systems::KvConfig store = store_config(point);
  const Bytes item = store.key_size + store.max_value_size + kOverhead;
  const Bytes sessions = Bytes{store.sessions} * partitions(point, system_of(point));
  Bytes sum = kProcess + point.settings.server_threads * kPartition +
              Bytes{store.sessions} * (kClient + point.settings.queue_depth * 2 * item) +
              sessions * (kSession + kBuffersOfSession * item) + store.writes * item * kCopies;
  if (point.settings.check_history) sum += point.operations() * kOperationOfHistory;
  if (point.timeline_interval > Nanoseconds{}) sum += point.operations() * kOperationOfTimeline;
  return sum;
}

}  // namespace perdura::bench
