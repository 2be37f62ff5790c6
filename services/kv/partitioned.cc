#include "services/kv/partitioned.h"

#include <cmath>

namespace perdura::kv {
namespace {

// Must differ from the seeds that partitions use.
constexpr std::uint64_t kRoutingSeed = 0x706172746974696f;

std::uint64_t share(std::uint64_t total, std::uint32_t partitions) {
  const double mean = static_cast<double>(total) / partitions;
  const auto sized = static_cast<std::uint64_t>(std::ceil(mean + 6.0 * std::sqrt(mean)));
  return std::min(total, sized);
}

}  // namespace

std::uint32_t partition_of(Key key, std::uint32_t partitions) {
  if (partitions == 1) return 0;
  // The upper half of the product is uniformly distributed over the partitions, and needs no
  // division.
  const std::uint64_t hash = hash64(key, kRoutingSeed) >> 32;
  return static_cast<std::uint32_t>((hash * partitions) >> 32);
}

KvConfig partition_config(const KvConfig& whole, std::uint32_t partitions) {
  KvConfig config = whole;
  if (partitions == 1) return config;
  config.records = share(whole.records, partitions);
  // Popular keys are written many times, so the writes to one partition have no such bound.
  config.writes = whole.writes;
  return config;
}

Task<std::unique_ptr<PartitionedSession>> PartitionedSession::connect(
    const KvSystem& system, Thread& thread, std::vector<fabric::Address> partitions,
    KvConfig config) {
  std::vector<std::unique_ptr<KvSession>> sessions;
  for (const fabric::Address partition : partitions) {
    sessions.push_back(co_await system.connect(thread, partition, config));
  }
  co_return std::make_unique<PartitionedSession>(std::move(sessions));
}

SessionCounts PartitionedSession::counts() const {
  SessionCounts sum;
  for (const auto& session : sessions_) {
    const SessionCounts counts = session->counts();
    sum.torn_reads += counts.torn_reads;
    sum.one_sided_reads += counts.one_sided_reads;
    sum.retries += counts.retries;
  }
  return sum;
}

std::vector<double> PartitionedSession::metrics() const {
  std::vector<double> sums;
  for (const auto& session : sessions_) services::add_metrics(session->metrics(), sums);
  return sums;
}

}  // namespace perdura::kv
