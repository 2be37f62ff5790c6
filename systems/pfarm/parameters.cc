#include "systems/pfarm/parameters.h"

#include <fmt/core.h>

#include "platform/base/error.h"
#include "systems/bucket_hash/parameters.h"

namespace perdura::systems::pfarm {

namespace {

// The largest load factor, in percent, of the first table with all records in it.
constexpr std::uint64_t kRecordsPerHundredSlots = 40;

std::uint64_t homes_for(std::uint64_t records) {
  return records * 100 / (kRecordsPerHundredSlots * kBucketSlots) + 1;
}

}  // namespace

Parameters Parameters::of(const kv::KvConfig& config) {
  const ParameterReader given(kName, kTable, config.parameters);
  bucket_hash::require_slots(given, config);
  given.require_within("workers (server_threads in an experiment)", config.workers, 1, kMaxWorkers);
  Parameters result;
  const auto overflow_percent = given.number<std::uint32_t>("overflow_percent");
  const auto resizes = given.number<std::uint32_t>("resizes");
  result.queue_depth = given.number<std::uint32_t>("queue_depth");
  const std::uint64_t homes = given.number("buckets", homes_for(config.records));
  bucket_hash::require_tables(kName, "buckets", homes, resizes);
  result.geometry = {homes, overflow_percent, resizes, kMaxWorkers};
  return result;
}

}  // namespace perdura::systems::pfarm
