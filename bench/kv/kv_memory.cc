// What a point takes of this machine's memory where one process is all of its nodes.
#include <algorithm>
#include <cmath>

#include "bench/kv/kv_driver.h"

namespace perdura::bench {
namespace {

// Memory counts when it is touched: a store's pool is as large as its log may become, and the
// buffers of a session have room for all operations that may be under way, but most points use a
// part. So what is touched was measured, as the most that processes on sim had in memory, over one
// to 10,000 clients, one to 1,000 server threads, queues of one to 64, values of up to 4 KiB, up to
// 200,000 records and 400,000 operations, and fitted to what grows with each of these. The result
// is 1.1 to 1.9 times what was measured in every case (docs/performance.md, "Many clients").
struct Footprint {
  Bytes process;
  Bytes worker;       // a server thread
  Bytes log_items;    // of a partition, that its log has room for
  Bytes client;       // its thread, its generator and its histograms
  Bytes session;      // both sides
  Bytes operation;    // of the first ones of a session, which touch other buffers each
  double used_items;  // of the operations that go once around a session's buffers
  Bytes lane;         // of a session, beyond the first
  double lane_items;  // of an operation that is under way
  Bytes waiting;      // an operation of a client beyond its first
  Bytes record;       // beside the key and the value
  double record_items;
  Bytes write;         // of a put that stays in a log: beside the key and the value
  double write_items;  // what is kept of each put, since the log is not cleaned before it is full
};

constexpr Footprint kErda{.process = 17'500'000,
                          .worker = 90'500,
                          .log_items = 0,
                          .client = 15'900,
                          .session = 17'700,
                          .operation = 1'220,
                          .used_items = 2.75,
                          .lane = 4'950,
                          .lane_items = 1.8,
                          .waiting = 5'450,
                          .record = 213,
                          .record_items = 0.05,
                          .write = 32,
                          .write_items = 1.4};
// Redo Logging and Read After Write: a log of each partition, from which records are moved.
constexpr Footprint kWithLog{.process = 23'200'000,
                             .worker = 909'000,
                             .log_items = 125,
                             .client = 16'900,
                             .session = 19'100,
                             .operation = 6'830,
                             .used_items = 1.33,
                             .lane = 2'340,
                             .lane_items = 4.7,
                             .waiting = 2'820,
                             .record = 210,
                             .record_items = 1.7,
                             .write = 0,
                             .write_items = 0};
// Those of a hash table with small values, which all server threads share.
constexpr Footprint kHashTable{.process = 19'500'000,
                               .worker = 14'000,
                               .log_items = 0,
                               .client = 31'300,
                               .session = 0,
                               .operation = 2'590,
                               .used_items = 28.1,
                               .lane = 1'060,
                               .lane_items = 0,
                               .waiting = 5'570,
                               .record = 129,
                               .record_items = 0,
                               .write = 0,
                               .write_items = 0};

constexpr Bytes kOperationOfHistory = 160;
constexpr Bytes kOperationOfTimeline = 128;
constexpr std::uint64_t kFirstOperations = 6;  // of a session
constexpr std::uint64_t kBuffers = 16;         // of a session, which it uses in turn
constexpr std::uint64_t kMostLanes = 16;

const Footprint& footprint_of(const systems::KvSystem& system) {
  if (system.shares_partition) return kHashTable;
  return system.name == "erda" ? kErda : kWithLog;
}

// How many operations of a client are ever under way in the same session: all if it has one, else
// its share with three standard deviations.
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
  const systems::KvSystem& system = system_of(point);
  const Footprint& each = footprint_of(system);
  const systems::KvConfig store = store_config(point);
  const Bytes item = store.key_size + store.max_value_size;
  const std::uint64_t clients = store.sessions;
  const std::uint64_t depth = point.settings.queue_depth;
  const std::uint32_t stores = partitions(point, system);
  const std::uint64_t sessions = clients * stores;
  const std::uint64_t more_lanes = sessions * (lanes_of_session(depth, stores) - 1);
  const std::uint64_t operations = point.operations();
  Bytes sum = each.process + point.settings.server_threads * each.worker +
              stores * each.log_items * item + clients * each.client + sessions * each.session;
  sum += std::min(operations, kFirstOperations * sessions) * each.operation;
  sum += of_items(each.used_items, std::min(operations, kBuffers * sessions), item);
  sum += more_lanes * each.lane + clients * (depth - 1) * each.waiting;
  sum += of_items(each.lane_items, more_lanes + clients * depth, item);
  sum += store.records * each.record + of_items(each.record_items, store.records, item);
  sum += store.writes * each.write + of_items(each.write_items, store.writes, item);
  if (point.settings.check_history) sum += operations * kOperationOfHistory;
  if (point.timeline_interval > Nanoseconds{}) sum += operations * kOperationOfTimeline;
  return sum;
}

}  // namespace perdura::bench
