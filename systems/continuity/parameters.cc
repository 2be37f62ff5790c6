#include "systems/continuity/parameters.h"

#include <fmt/core.h>

#include <algorithm>

#include "platform/error.h"
#include "systems/bucket_hash/parameters.h"

namespace perdura::systems::continuity {

namespace {

// So full may the first table be with all records in it. Without added SBuckets an unlucky segment
// may be full long before; a resize helps.
constexpr std::uint64_t kRecordsPerHundredSlots = 40;

std::uint64_t buckets_for(std::uint64_t records, std::uint64_t sbuckets) {
  const std::uint64_t slots_per_pair = kBucketSlots * (2 + sbuckets);
  const std::uint64_t slots = records * 100 / kRecordsPerHundredSlots + 1;
  return 2 * ((slots + slots_per_pair - 1) / slots_per_pair);
}

}  // namespace

Parameters Parameters::of(const KvConfig& config) {
  Parameters result;
  std::uint64_t buckets = 0;
  std::uint64_t sbuckets = result.geometry.sbuckets;
  std::uint64_t resized_sbuckets = 0;
  std::uint64_t added_percent = result.geometry.added_percent;
  std::uint64_t resizes = result.geometry.resizes;
  std::uint64_t queue_depth = result.queue_depth;
  for (const auto& [name, value] : config.parameters) {
    if (name == "buckets") {
      buckets = value;
    } else if (name == "sbuckets") {
      sbuckets = value;
    } else if (name == "resized_sbuckets") {
      resized_sbuckets = value;
    } else if (name == "added_percent") {
      added_percent = value;
    } else if (name == "resizes") {
      resizes = value;
    } else if (name == "queue_depth") {
      queue_depth = value;
    } else {
      throw UsageError(
          fmt::format("{} has no parameter '{}'; it has buckets, sbuckets, resized_sbuckets, "
                      "added_percent, resizes and queue_depth",
                      kName, name));
    }
  }
  bucket_hash::require_slots(kName, config);
  const auto within = [](std::string_view parameter, std::uint64_t value, std::uint64_t least,
                         std::uint64_t most) {
    bucket_hash::require_within(kName, parameter, value, least, most);
  };
  within("sbuckets", sbuckets, 1, kMaxSBuckets);
  if (!config.parameters.contains("resized_sbuckets")) resized_sbuckets = sbuckets;
  within("resized_sbuckets", resized_sbuckets, sbuckets, kMaxSBuckets);
  within("added_percent", added_percent, 0, 100);
  within("resizes", resizes, 0, kMaxResizes);
  within("queue_depth", queue_depth, 1, 4096);
  if (!config.parameters.contains("buckets")) buckets = buckets_for(config.records, sbuckets);
  within("buckets", buckets, 2, std::uint64_t{1} << 32);
  bucket_hash::require_tables(kName, "buckets", buckets, resizes);
  if (buckets % 2 != 0) {
    throw UsageError(
        fmt::format("{}: buckets is {}, but must be even: two share SBuckets", kName, buckets));
  }
  result.geometry = {buckets / 2, static_cast<std::uint32_t>(sbuckets),
                     static_cast<std::uint32_t>(added_percent), static_cast<std::uint32_t>(resizes),
                     static_cast<std::uint32_t>(resized_sbuckets)};
  result.queue_depth = static_cast<std::uint32_t>(queue_depth);
  return result;
}

}  // namespace perdura::systems::continuity
