// Estimates the memory of this machine that a point takes if one process runs all of its nodes.
#include <algorithm>
#include <cmath>

#include "bench/driver/systems.h"
#include "bench/kv/kv_driver.h"
#include "bench/ycsb/point_workload.h"

namespace perdura::bench {
namespace {

constexpr Bytes kOperationOfHistory = 160;
constexpr Bytes kOperationOfTimeline = 128;
constexpr std::uint64_t kFirstOperations = 6;  // a session's operations that touch new buffers
constexpr std::uint64_t kBuffers = 16;         // buffers that a session uses in turn
constexpr std::uint64_t kMostLanes = 16;

// The largest expected number of operations that a client has in flight in one session: all if it
// has one session, else its share plus three standard deviations.
std::uint64_t lanes_of_session(std::uint64_t queue_depth, std::uint32_t partitions) {
  const double share = static_cast<double>(queue_depth) / partitions;
  const auto most = static_cast<std::uint64_t>(std::ceil(share + 3 * std::sqrt(share)));
  return std::min({queue_depth, most, kMostLanes});
}

Bytes of_items(double count, std::uint64_t of_each, Bytes item) {
  return static_cast<Bytes>(count * static_cast<double>(of_each * item));
}

}  // namespace

std::optional<Bytes> KvDriver::memory(const harness::Point& point) const {
  const kv::KvSystem& system = system_of(point, systems_);
  if (!system.footprint) return std::nullopt;
  const services::Footprint& each = *system.footprint;
  const kv::KvConfig store = store_config(point);
  const Bytes item = store.key_size + store.max_value_size;
  const std::uint64_t clients = store.sessions;
  const std::uint64_t depth = point.settings.number("queue_depth");
  const std::uint32_t stores = partitions(point, system);
  const std::uint64_t sessions = clients * stores;
  const std::uint64_t more_lanes = sessions * (lanes_of_session(depth, stores) - 1);
  const std::uint64_t operations = all_operations(point);
  Bytes sum = each.process + point.settings.number("server_threads") * each.worker +
              stores * each.log_items * item + clients * each.client + sessions * each.session;
  sum += std::min(operations, kFirstOperations * sessions) * each.operation;
  sum += of_items(each.buffer_items, std::min(operations, kBuffers * sessions), item);
  sum += more_lanes * each.lane + clients * (depth - 1) * each.waiting;
  sum += of_items(each.lane_items, more_lanes + clients * depth, item);
  sum += store.records * each.record + of_items(each.record_items, store.records, item);
  sum += store.writes * each.write + of_items(each.write_items, store.writes, item);
  if (point.settings.flag("check_history")) sum += operations * kOperationOfHistory;
  if (point.timeline_interval > Nanoseconds{}) sum += operations * kOperationOfTimeline;
  return sum;
}

}  // namespace perdura::bench
