#include "systems/bucket_hash/parameters.h"

#include <fmt/core.h>

#include <bit>

#include "platform/base/error.h"
#include "systems/bucket_hash/slot.h"

namespace perdura::systems::bucket_hash {

namespace {
// The limit is so low that all tables together stay far below 2^64 bytes, whatever the size of a
// bucket.
constexpr std::uint64_t kMaxBuckets = std::uint64_t{1} << 40;
}  // namespace

void require_slots(const ParameterReader& given, const kv::KvConfig& config) {
  given.require_within("key_size", config.key_size, 1, kMaxKeySize);
  given.require_within("value_size", config.value_size, 0, kMaxValueSize);
  given.require_within("max_value_size", config.max_value_size, config.value_size, kMaxValueSize);
  given.require_within("records", config.records, 1, std::uint64_t{1} << 31);
  given.require_within("sessions", config.sessions, 1, 1U << 16);
}

void require_tables(std::string_view system, std::string_view what, std::uint64_t buckets,
                    std::uint64_t resizes) {
  if (buckets <= kMaxBuckets >> resizes) return;
  throw UsageError(fmt::format(
      "{}: {} is {} and resizes {}, but a table of {} buckets can be doubled at most {} times: "
      "lower one of them",
      system, what, buckets, resizes, buckets, std::bit_width(kMaxBuckets / buckets) - 1));
}

}  // namespace perdura::systems::bucket_hash
