#include "systems/level/parameters.h"

#include <fmt/core.h>

#include "platform/base/error.h"
#include "systems/bucket_hash/parameters.h"

namespace perdura::systems::level {

namespace {

// The largest load factor, in percent, of the first two levels with all records in them. They could
// hold more, but then most updates would have to be logged.
constexpr std::uint64_t kRecordsPerHundredSlots = 50;

// Number of logs, the same in every pool, so that a pool can be opened for any number of workers.
// If there are more workers than logs, workers share logs.
constexpr std::uint32_t kLogs = 16;

// The number of buckets of the top level, which has two thirds of all slots.
std::uint64_t top_buckets_for(std::uint64_t records) {
  const std::uint64_t slots = records * 100 / kRecordsPerHundredSlots + 1;
  constexpr std::uint64_t kSlotsPerFour = 6 * kBucketSlots;
  return 4 * ((slots + kSlotsPerFour - 1) / kSlotsPerFour);
}

}  // namespace

Parameters Parameters::of(const kv::KvConfig& config) {
  const ParameterReader given(kName, kTable, config.parameters);
  bucket_hash::require_slots(given, config);
  Parameters result;
  const std::uint32_t resizes = given.number<std::uint32_t>("resizes");
  result.queue_depth = given.number<std::uint32_t>("queue_depth");
  const std::uint64_t top_buckets = given.number("top_buckets", top_buckets_for(config.records));
  bucket_hash::require_tables(kName, "top_buckets", top_buckets, resizes);
  if (top_buckets % 4 != 0) {
    throw UsageError(fmt::format(
        "{}: top_buckets is {}, but must be a multiple of 4: the bottom level has half as many, "
        "and both have two halves",
        kName, top_buckets));
  }
  result.geometry = {top_buckets / 2, resizes, kLogs};
  return result;
}

}  // namespace perdura::systems::level
