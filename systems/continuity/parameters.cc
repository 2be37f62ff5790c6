#include "systems/continuity/parameters.h"

#include <fmt/core.h>

#include "platform/base/error.h"
#include "systems/bucket_hash/parameters.h"

namespace perdura::systems::continuity {

namespace {

// The largest load factor, in percent, of the first table with all records in it. Without added
// SBuckets a segment with many keys may be full long before the table is, which makes it resize.
constexpr std::uint64_t kRecordsPerHundredSlots = 40;

std::uint64_t buckets_for(std::uint64_t records, std::uint64_t sbuckets) {
  const std::uint64_t slots_per_pair = kBucketSlots * (2 + sbuckets);
  const std::uint64_t slots = records * 100 / kRecordsPerHundredSlots + 1;
  return 2 * ((slots + slots_per_pair - 1) / slots_per_pair);
}

}  // namespace

Parameters Parameters::of(const kv::KvConfig& config) {
  const ParameterReader given(kName, kTable, config.parameters);
  bucket_hash::require_slots(given, config);
  Parameters result;
  Geometry& table = result.geometry;
  table.sbuckets = given.number<std::uint32_t>("sbuckets");
  table.resized_sbuckets =
      given.number("resized_sbuckets", table.sbuckets, table.sbuckets, kMaxSBuckets);
  table.added_percent = given.number<std::uint32_t>("added_percent");
  table.resizes = given.number<std::uint32_t>("resizes");
  result.queue_depth = given.number<std::uint32_t>("queue_depth");
  const std::uint64_t buckets =
      given.number("buckets", buckets_for(config.records, table.sbuckets));
  bucket_hash::require_tables(kName, "buckets", buckets, table.resizes);
  if (buckets % 2 != 0) {
    throw UsageError(
        fmt::format("{}: buckets is {}, but must be even: two share SBuckets", kName, buckets));
  }
  table.pairs = buckets / 2;
  return result;
}

}  // namespace perdura::systems::continuity
