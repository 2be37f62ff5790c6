#include "systems/mcas/parameters.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "platform/base/error.h"
#include "systems/parameter_reader.h"

namespace perdura::systems::mcas {

namespace {

constexpr Bytes kDefaultMaxKeySize = 512;
constexpr std::uint64_t kMostRecords = std::uint64_t{1} << 31;

// The load factor, in percent, up to which the table is expected to take all records.
constexpr std::uint64_t kRecordsPerHundredEntries = 75;

// A store for few records has smaller regions and granules, so that it consists of several; but
// objects of all lengths for which there are buckets fit into its regions.
constexpr Bytes kLeastUsualRegion = kLeastSlots * kLongestInRegion;
constexpr std::uint64_t kUsualRegions = 64;
constexpr std::uint64_t kUsualGranules = 16;

// Regions that are not full: one for each size of slots, and what a segment of the table may leave
// unusable beside it.
constexpr std::uint64_t kBuckets = 8;

void require_power_of_two(std::string_view name, std::uint64_t value) {
  if (std::has_single_bit(value)) return;
  throw ParameterError(name,
                       fmt::format("{}: {} is {}, but must be a power of two", kName, name, value));
}

std::uint32_t segments_for(std::uint64_t records, std::uint64_t first_segment) {
  const std::uint64_t entries = records * 100 / kRecordsPerHundredEntries + 1;
  std::uint32_t segments = 1;
  while (segments < hstore::kMostSegments && first_segment << (segments - 1) < entries) ++segments;
  return segments;
}

// Memory for keys and values, of which an update needs one more value, and for the table.
Bytes memory_for(const KvConfig& config, const hstore::Shape& shape) {
  const auto of_field = [&](Bytes length) {
    return length <= hstore::kLongestInField ? 0 : shape.heap.slot_size(length);
  };
  const Bytes record = of_field(config.key_size) + of_field(config.max_value_size);
  return (config.records + 1) * record +
         shape.table.entries(shape.most_segments) * sizeof(hstore::Entry) +
         shape.heap.slot_size(sizeof(hstore::TableRoot));
}

}  // namespace

RegionAllocator::Extent Parameters::extent() const {
  return {round_up(kAllocatorOffset + RegionAllocator::size(granules), kMediaLine), granules,
          granule};
}

Parameters Parameters::of(const KvConfig& config) {
  const ParameterReader given(kName, kParameterTable, config.parameters);
  given.require_within("key_size", config.key_size, 1, kLongestKey);
  given.require_within("max_value_size", config.max_value_size, config.value_size, kLongestValue);
  given.require_within("records", config.records, 1, kMostRecords);
  given.require_within("sessions", config.sessions, 1, 1U << 16);
  Parameters result;
  result.max_key_size = given.number("max_key_size", std::max(config.key_size, kDefaultMaxKeySize),
                                     config.key_size, kLongestKey);
  result.max_value_size = config.max_value_size;
  result.queue_depth = given.number<std::uint32_t>("queue_depth");

  hstore::Shape& engine = result.engine;
  engine.table.first_segment = given.number<std::uint64_t>("first_segment");
  require_power_of_two("first_segment", engine.table.first_segment);
  engine.table.hops = given.number<std::uint32_t>("neighborhood");
  engine.most_segments =
      given.number("segments", segments_for(config.records, engine.table.first_segment));
  // What the state of an entry keeps of a hash chooses among all entries.
  const std::uint64_t most = std::uint64_t{1} << hstore::State::kHashBits;
  if (engine.table.first_segment > most >> (engine.most_segments - 1)) {
    throw ParameterError(
        "segments", fmt::format("{}: {} segments, the first of {} entries, are more than the "
                                "{} entries that a table may have",
                                kName, engine.most_segments, engine.table.first_segment, most));
  }

  const Bytes needed = memory_for(config, engine);
  const Bytes usual_region =
      std::clamp(std::bit_floor(needed / kUsualRegions), kLeastUsualRegion, kRegionSize);
  engine.heap.region_size = given.number("heap_region", usual_region);
  require_power_of_two("heap_region", engine.heap.region_size);
  const Bytes region = engine.heap.region_size;
  result.granule = given.number(
      "granule", std::max(region, std::min(std::bit_ceil(needed / kUsualGranules), kGranule)));
  if (result.granule % region != 0) {
    throw ParameterError("granule",
                         fmt::format("{}: granule is {}, but must be a multiple of heap_region, "
                                     "which is {}",
                                     kName, result.granule, region));
  }
  const Bytes whole =
      memory_for(config, engine) + (kBuckets + engine.most_segments) * engine.heap.region_size;
  result.granules = given.number("granules", whole / result.granule + 2);
  // The root and the first segment, each perhaps in a region and in granules of its own.
  const auto granules_of = [&](Bytes length) {
    return (engine.heap.slot_size(length) + region + result.granule - 1) / result.granule;
  };
  if (result.granules < granules_of(sizeof(hstore::TableRoot)) +
                            granules_of(engine.table.entries_of(0) * sizeof(hstore::Entry))) {
    throw ParameterError(
        "granules",
        fmt::format("{}: {} granules of {} bytes are too few for a first segment of {} "
                    "entries",
                    kName, result.granules, result.granule, engine.table.first_segment));
  }
  engine.heap.first = result.extent().first;
  return result;
}

}  // namespace perdura::systems::mcas
