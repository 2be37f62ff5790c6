#include "systems/bucket_hash/parameters.h"

#include <fmt/core.h>

#include <bit>

#include "platform/error.h"
#include "systems/bucket_hash/slot.h"

namespace perdura::systems::bucket_hash {

namespace {
// With the sizes of buckets, all tables together stay far below 2^64 bytes.
constexpr std::uint64_t kMaxBuckets = std::uint64_t{1} << 40;
}  // namespace

void require_within(std::string_view system, std::string_view what, std::uint64_t value,
                    std::uint64_t least, std::uint64_t most) {
  if (value >= least && value <= most) return;
  throw UsageError(
      fmt::format("{}: {} is {}, but must be {} to {}", system, what, value, least, most));
}

void require_slots(std::string_view system, const KvConfig& config) {
  require_within(system, "key_size", config.key_size, 1, kMaxKeySize);
  require_within(system, "value_size", config.value_size, 0, kMaxValueSize);
  require_within(system, "max_value_size", config.max_value_size, config.value_size, kMaxValueSize);
  require_within(system, "records", config.records, 1, std::uint64_t{1} << 31);
  require_within(system, "sessions", config.sessions, 1, 1U << 16);
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
