#include "systems/pfarm/parameters.h"

#include <fmt/core.h>

#include "platform/error.h"
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
  Parameters result;
  std::uint64_t homes = 0;
  std::uint64_t overflow_percent = result.geometry.overflow_percent;
  std::uint64_t resizes = result.geometry.resizes;
  std::uint64_t queue_depth = result.queue_depth;
  for (const auto& [name, value] : config.parameters) {
    if (name == "buckets") {
      homes = value;
    } else if (name == "overflow_percent") {
      overflow_percent = value;
    } else if (name == "resizes") {
      resizes = value;
    } else if (name == "queue_depth") {
      queue_depth = value;
    } else {
      throw UsageError(
          fmt::format("{} has no parameter '{}'; it has buckets, overflow_percent, resizes and "
                      "queue_depth",
                      kName, name));
    }
  }
  bucket_hash::require_slots(kName, config);
  const auto within = [](std::string_view parameter, std::uint64_t value, std::uint64_t least,
                         std::uint64_t most) {
    bucket_hash::require_within(kName, parameter, value, least, most);
  };
  within("workers (server_threads in an experiment)", config.workers, 1, kMaxWorkers);
  within("overflow_percent", overflow_percent, 0, 100);
  within("resizes", resizes, 0, kMaxResizes);
  within("queue_depth", queue_depth, 1, 4096);
  if (!config.parameters.contains("buckets")) homes = homes_for(config.records);
  within("buckets", homes, 1, std::uint64_t{1} << 32);
  bucket_hash::require_tables(kName, "buckets", homes, resizes);
  result.geometry = {homes, static_cast<std::uint32_t>(overflow_percent),
                     static_cast<std::uint32_t>(resizes), kMaxWorkers};
  result.queue_depth = static_cast<std::uint32_t>(queue_depth);
  return result;
}

}  // namespace perdura::systems::pfarm
