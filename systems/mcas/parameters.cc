#include "systems/mcas/parameters.h"

#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <charconv>

#include "platform/base/error.h"
#include "platform/base/words.h"
#include "systems/mcas/ado/plugins/plugins.h"
#include "systems/mcas/allocations.h"
#include "systems/mcas/protocol/messages.h"
#include "systems/parameter_reader.h"

namespace perdura::systems::mcas {

namespace {

constexpr Bytes kPage = 4 * KiB;  // the unit of memory protection

constexpr Bytes kDefaultMaxKeySize = 512;
constexpr std::uint64_t kMostRecords = std::uint64_t{1} << 31;
constexpr Bytes kMostMemory = Bytes{1} << 44;

// The load factor, in percent, up to which the table is expected to take all records.
constexpr std::uint64_t kRecordsPerHundredEntries = 75;

// A store for few records gets smaller regions and granules, so that it consists of several; but
// its regions have room for objects of all lengths for which there are buckets.
constexpr Bytes kLeastUsualRegion = kLeastSlots * kLongestInRegion;
constexpr std::uint64_t kUsualRegions = 64;
constexpr std::uint64_t kUsualGranules = 16;

// Regions that may be only partly used: one for each size of slots, and what a segment of the table
// may leave unused next to it.
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

// Bytes needed for the table, and for keys and values. An update needs one more value.
Bytes memory_for(const kv::KvConfig& config, const hstore::Shape& shape) {
  const auto of_field = [&](Bytes length) {
    return length <= hstore::kLongestInField ? 0 : shape.heap.slot_size(length);
  };
  const Bytes record = of_field(config.key_size) + of_field(config.max_value_size);
  return (config.records + 1) * record +
         shape.table.entries(shape.most_segments) * sizeof(hstore::HstoreEntry) +
         shape.heap.slot_size(sizeof(hstore::TableRoot));
}

// A list that ends with a comma has an empty last name, which is a mistake.
std::vector<std::string> names_in(const std::string& list) {
  return list.empty() ? std::vector<std::string>() : parts_of(list + ',', ',');
}

std::vector<std::string> plugins_of(const std::string& list) {
  std::vector<std::string> names = names_in(list);
  try {
    ado::check_plugins(names);
  } catch (const UsageError& error) {
    throw ParameterError("plugins", fmt::format("{}: {}", kName, error.what()));
  }
  return names;
}

// As many as the operating system's sets of cores hold.
constexpr unsigned kMostCores = CPU_SETSIZE;

std::vector<unsigned> cores_of(const std::string& list) {
  std::vector<unsigned> cores;
  for (const std::string& name : names_in(list)) {
    unsigned core = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), core);
    if (error == std::errc() && end == name.data() + name.size() && core >= kMostCores) {
      throw ParameterError("plugin_cores",
                           fmt::format("{}: plugin_cores has {}; cores have numbers from 0 to {}",
                                       kName, name, kMostCores - 1));
    }
    if (error != std::errc() || end != name.data() + name.size()) {
      throw ParameterError("plugin_cores",
                           fmt::format("{}: plugin_cores has '{}', which is no number of a core; "
                                       "write 2,3",
                                       kName, name));
    }
    cores.push_back(core);
  }
  return cores;
}

// The port of a node's first shard.
constexpr fabric::Port kFirstShard = 0;

void set_plugins(Parameters& result, const ParameterReader& given) {
  result.plugins = plugins_of(given.text("plugins"));
  result.plugin_signals = given.flag("plugin_signals");
  result.plugin_consent = given.flag("plugin_consent");
  result.plugin_patience = Milliseconds(given.number<std::uint64_t>("plugin_patience"));
  result.plugin_limits.isolation =
      given.flag("plugin_isolation") ? Isolation::full : Isolation::none;
  result.plugin_limits.memory = given.number<Bytes>("plugin_memory");
  result.plugin_limits.cores = cores_of(given.text("plugin_cores"));
  if (const auto peer = given.number_if_given("plugin_peer")) {
    result.plugin_peer = fabric::Address{static_cast<NodeId>(*peer), kFirstShard};
  }
  if (result.plugin_consent && !result.plugin_signals) {
    throw ParameterError("plugin_consent",
                         fmt::format("{}: plugin_consent needs plugin_signals = true", kName));
  }
  if (!ado::names_replicate(result.plugins)) return;
  if (!result.plugin_peer) {
    throw ParameterError(
        "plugins",
        fmt::format("{}: the plugin replicate needs plugin_peer, the node of the other shard",
                    kName));
  }
  // Otherwise a change could be acknowledged that the other shard does not have.
  if (!result.plugin_consent) {
    throw ParameterError("plugins",
                         fmt::format("{}: the plugin replicate needs plugin_signals = true and "
                                     "plugin_consent = true",
                                     kName));
  }
}

// Reads the parameters that do not depend on the kind of store.
Parameters common(const ParameterReader& given, std::uint32_t sessions, Bytes usual_max_key_size,
                  Bytes least_max_key_size) {
  given.require_within("sessions", sessions, 1, 1U << 16);
  Parameters result;
  result.sessions = sessions;
  result.max_key_size =
      given.number("max_key_size", usual_max_key_size, least_max_key_size, kLongestKey);
  result.kind = engine_named(given.text("engine"));
  result.engine.longest_key = std::max<Bytes>(result.max_key_size, sizeof(AllocationKey));
  result.queue_depth = given.number<std::uint32_t>("queue_depth");
  result.pools = given.number<std::uint32_t>("pools");
  result.direct_piece = given.number<Bytes>("direct_piece");
  set_plugins(result, given);
  hstore::TableShape& table = result.engine.table;
  table.first_segment = given.number<std::uint64_t>("first_segment");
  require_power_of_two("first_segment", table.first_segment);
  table.hops = given.number<std::uint32_t>("neighborhood");
  return result;
}

// A request with the longest key and the longest value must fit into one message.
void require_one_message(const Parameters& parameters) {
  const Welcome limits{.max_key_size = parameters.max_key_size,
                       .max_value_size = parameters.max_value_size};
  if (limits.longest_request() <= kLongestMessage) return;
  throw ParameterError(
      "max_key_size",
      fmt::format("{}: a key of {} bytes and a value of {} are more than a "
                  "message has, {} bytes; lower max_key_size or the values that "
                  "travel in messages",
                  kName, limits.max_key_size, limits.longest_value(), kLongestMessage));
}

// The bits of a hash that an entry's state keeps must suffice to number all entries.
constexpr std::uint64_t kMostEntries = std::uint64_t{1} << hstore::State::kHashBits;

void set_segments(Parameters& result, std::uint32_t segments) {
  const std::uint64_t first = result.engine.table.first_segment;
  if (first > kMostEntries >> (segments - 1)) {
    throw ParameterError("segments",
                         fmt::format("{}: {} segments, the first of {} entries, are more than the "
                                     "{} entries that a table may have",
                                     kName, segments, first, kMostEntries));
  }
  result.engine.most_segments = segments;
}

// Sets the sizes of regions and granules for `needed` bytes of keys, values and table.
void set_granularity(Parameters& result, const ParameterReader& given, Bytes needed) {
  const Bytes usual_region =
      std::clamp(std::bit_floor(needed / kUsualRegions), kLeastUsualRegion, kRegionSize);
  result.engine.heap.region_size = given.number("heap_region", usual_region);
  require_power_of_two("heap_region", result.engine.heap.region_size);
  const Bytes region = result.engine.heap.region_size;
  result.granule = given.number(
      "granule", std::max(region, std::min(std::bit_ceil(needed / kUsualGranules), kGranule)));
  if (result.granule % region != 0) {
    throw ParameterError("granule",
                         fmt::format("{}: granule is {}, but must be a multiple of heap_region, "
                                     "which is {}",
                                     kName, result.granule, region));
  }
}

void set_granules(Parameters& result, std::uint64_t granules) {
  result.granules = granules;
  // The root and the first segment may each need a region and granules of their own.
  const hstore::Shape& engine = result.engine;
  const auto granules_of = [&](Bytes length) {
    return (engine.heap.slot_size(length) + engine.heap.region_size + result.granule - 1) /
           result.granule;
  };
  if (granules < granules_of(root_size(result.kind)) +
                     granules_of(engine.table.entries_of(0) * sizeof(hstore::HstoreEntry))) {
    throw ParameterError(
        "granules",
        fmt::format("{}: {} granules of {} bytes are too few for a first segment of {} "
                    "entries; give it more memory, or set a smaller first_segment",
                    kName, result.granules, result.granule, engine.table.first_segment));
  }
  result.engine.heap_map = result.heap_map_offset();
  result.engine.heap.first = result.extent().first;
}

}  // namespace

Bytes Parameters::heap_map_offset() const {
  return round_up(allocator_offset() + RegionAllocator::size(granules), kCacheLine);
}

RegionAllocator::Extent Parameters::extent() const {
  const Bytes map = heap_map_size(kind, granules * granule, engine.heap.region_size);
  // If granules are whole pages, pools begin at a page, so that a process can be given just those.
  const bool pages = planned.records == 0 && granule % kPage == 0;
  return {round_up(heap_map_offset() + map, pages ? kPage : kMediaLine), granules, granule};
}

Parameters Parameters::of(const kv::KvConfig& config) {
  const ParameterReader given(kName, kParameterTable, config.parameters);
  given.require_within("key_size", config.key_size, 1, kLongestKey);
  given.require_within("max_value_size", config.max_value_size, config.value_size, kLongestValue);
  given.require_within("records", config.records, 1, kMostRecords);
  Parameters result = common(given, config.sessions, std::max(config.key_size, kDefaultMaxKeySize),
                             config.key_size);
  result.planned = {config.key_size, config.value_size, config.records};
  result.flushing = flushing_of(config);
  result.max_value_size = config.max_value_size;
  require_one_message(result);
  hstore::Shape& engine = result.engine;
  set_segments(result,
               given.number("segments", segments_for(config.records, engine.table.first_segment)));
  const Bytes needed = memory_for(config, engine);
  set_granularity(result, given, needed);
  const Bytes whole = needed + (kBuckets + engine.most_segments) * engine.heap.region_size;
  set_granules(result, given.number("granules", whole / result.granule + 2));
  return result;
}

Parameters Parameters::of(const objects::Config& config) {
  const ParameterReader given(kName, kParameterTable, config.parameters);
  given.require_within("memory", config.memory, 1, kMostMemory);
  given.require_within("max_message_value", config.max_message_value, 0, kLongestInMessage);
  Parameters result = common(given, config.sessions, kDefaultMaxKeySize, 1);
  result.max_value_size = config.max_message_value;
  require_one_message(result);
  // Pools grow as long as there is memory.
  const std::uint64_t doublings = std::bit_width(kMostEntries / result.engine.table.first_segment);
  set_segments(result, given.number("segments", static_cast<std::uint32_t>(std::min<std::uint64_t>(
                                                    doublings, hstore::kMostSegments))));
  set_granularity(result, given, config.memory);
  set_granules(result,
               given.number("granules", (config.memory + result.granule - 1) / result.granule));
  return result;
}

}  // namespace perdura::systems::mcas
