#include "systems/level/parameters.h"

#include <fmt/core.h>

#include "platform/error.h"
#include "systems/bucket_hash/parameters.h"

namespace perdura::systems::level {

namespace {

// So full may the first two levels be with all records in them. They would hold more, but then most
// updates are logged.
constexpr std::uint64_t kRecordsPerHundredSlots = 50;

// The same in every pool, which can be opened for any number of workers. More than these share
// logs.
constexpr std::uint32_t kLogs = 16;

// Of the top level: two thirds of all slots.
std::uint64_t top_buckets_for(std::uint64_t records) {
  const std::uint64_t slots = records * 100 / kRecordsPerHundredSlots + 1;
  constexpr std::uint64_t kSlotsPerFour = 6 * kBucketSlots;
  return 4 * ((slots + kSlotsPerFour - 1) / kSlotsPerFour);
}

}  // namespace

Parameters Parameters::of(const KvConfig& config) {
  Parameters result;
  std::uint64_t top_buckets = 0;
  std::uint64_t resizes = result.geometry.resizes;
  std::uint64_t queue_depth = result.queue_depth;
  for (const auto& [name, value] : config.parameters) {
    if (name == "top_buckets") {
      top_buckets = value;
    } else if (name == "resizes") {
      resizes = value;
    } else if (name == "queue_depth") {
      queue_depth = value;
    } else {
      throw UsageError(fmt::format(
          "{} has no parameter '{}'; it has top_buckets, resizes and queue_depth", kName, name));
    }
  }
  bucket_hash::require_slots(kName, config);
  const auto within = [](std::string_view parameter, std::uint64_t value, std::uint64_t least,
                         std::uint64_t most) {
    bucket_hash::require_within(kName, parameter, value, least, most);
  };
  within("resizes", resizes, 0, kMaxResizes);
  within("queue_depth", queue_depth, 1, 4096);
  if (!config.parameters.contains("top_buckets")) top_buckets = top_buckets_for(config.records);
  within("top_buckets", top_buckets, 4, std::uint64_t{1} << 32);
  bucket_hash::require_tables(kName, "top_buckets", top_buckets, resizes);
  if (top_buckets % 4 != 0) {
    throw UsageError(fmt::format(
        "{}: top_buckets is {}, but must be a multiple of 4: the bottom level has half as many, "
        "and both have two halves",
        kName, top_buckets));
  }
  result.geometry = {top_buckets / 2, static_cast<std::uint32_t>(resizes), kLogs};
  result.queue_depth = static_cast<std::uint32_t>(queue_depth);
  return result;
}

}  // namespace perdura::systems::level
