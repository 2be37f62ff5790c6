#include "systems/pfarm/parameters.h"

#include <fmt/core.h>

#include "platform/base/error.h"
#include "systems/bucket_hash/parameters.h"

namespace perdura::systems::pfarm {

namespace {

// So full may the first table be with all records in it.
constexpr std::uint64_t kRecordsPerHundredSlots = 40;

std::uint64_t homes_for(std::uint64_t records) {
  return records * 100 / (kRecordsPerHundredSlots * kBucketSlots) + 1;
}

}  // namespace

Parameters Parameters::of(const KvConfig& config) {
  const ParameterReader given(kName, config,
                              {"buckets", "overflow_percent", "resizes", "queue_depth"});
  bucket_hash::require_slots(given, config);
  given.require_within("workers (server_threads in an experiment)", config.workers, 1, kMaxWorkers);
  Parameters result;
  const std::uint32_t overflow_percent =
      given.number("overflow_percent", result.geometry.overflow_percent, 0, 100);
  const std::uint32_t resizes = given.number("resizes", result.geometry.resizes, 0, kMaxResizes);
  result.queue_depth = given.number("queue_depth", result.queue_depth, 1, 4096);
  const std::uint64_t homes =
      given.number("buckets", homes_for(config.records), 1, std::uint64_t{1} << 32);
  bucket_hash::require_tables(kName, "buckets", homes, resizes);
  result.geometry = {homes, overflow_percent, resizes, kMaxWorkers};
  return result;
}

}  // namespace perdura::systems::pfarm
