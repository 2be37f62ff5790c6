#include "systems/write_ahead/pool.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "platform/base/error.h"
#include "platform/runtime/work.h"
#include "systems/parameter_reader.h"
#include "systems/write_ahead/record.h"

namespace perdura::systems::write_ahead {

namespace {

constexpr std::uint64_t kMagic = 0x4C4F4F5041445250;  // "PRDAPOOL"
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kHeaderSeed = 0x50524441;

constexpr std::uint64_t kDefaultLogSlots = 1024;
constexpr Bytes kDefaultLogBytes = 4 * MiB;
constexpr Bytes kDefaultMaxKeySize = 512;

PoolHeader header_of(std::string_view system, const Shape& shape) {
  PoolHeader header{kMagic, kVersion, 0, {}, shape};
  std::copy_n(system.begin(), std::min(system.size(), header.system.size()), header.system.begin());
  const auto bytes = std::as_bytes(std::span(&header, 1));
  header.crc = crc32(kHeaderSeed, bytes.subspan(offsetof(PoolHeader, system)));
  return header;
}

void check_header(const PoolHeader& found, const std::string& name, std::string_view system,
                  const Shape& shape) {
  if (found.magic != kMagic) {
    throw UsageError(
        fmt::format("'{}' is not a pool of {}; remove it or choose another name", name, system));
  }
  if (found.version != kVersion) {
    throw UsageError(fmt::format("pool '{}' has version {}, this program version {}; remove it",
                                 name, found.version, kVersion));
  }
  const auto bytes = std::as_bytes(std::span(&found, 1));
  if (found.crc != crc32(kHeaderSeed, bytes.subspan(offsetof(PoolHeader, system)))) {
    throw UsageError(fmt::format("the header of pool '{}' is damaged; remove the pool", name));
  }
  if (found.system != header_of(system, shape).system) {
    throw UsageError(fmt::format(
        "pool '{}' belongs to {}, not to {}; choose another name", name,
        std::string_view(found.system.data(), strnlen(found.system.data(), found.system.size())),
        system));
  }
  if (!(found.shape == shape)) {
    throw UsageError(
        fmt::format("pool '{}' was created for other sizes (keys of {}, values of {} up to {} "
                    "bytes, {} records, "
                    "{} log slots); remove it or use its sizes",
                    name, found.shape.key_size, found.shape.value_size, found.shape.max_value_size,
                    found.shape.records, found.shape.log_slots));
  }
}

}  // namespace

Parameters Parameters::of(const kv::KvConfig& config, std::string_view system,
                          std::uint64_t least_log_slots) {
  const ParameterReader given(system, kParameterTable, config.parameters);
  given.require_within("key_size", config.key_size, 1, kLongestKey);
  Parameters result;
  result.max_key_size = given.number("max_key_size", std::max(config.key_size, kDefaultMaxKeySize),
                                     config.key_size, kLongestKey);
  given.require_within("max_value_size", config.max_value_size, config.value_size, kLongestValue);
  given.require_within("records", config.records, 1, std::uint64_t{1} << 31);
  result.long_keys = given.number("long_keys", config.records / 8 + 1);
  given.require_within("sessions", config.sessions, 1, 1U << 16);
  result.neighborhood = given.number<std::uint64_t>("neighborhood");
  const auto neighborhood = static_cast<std::uint32_t>(result.neighborhood);
  result.buckets = given.number(
      "buckets",
      hopscotch::Geometry::for_records(config.records, config.key_size, neighborhood).buckets);
  result.queue_depth = given.number<std::uint64_t>("queue_depth");
  const Bytes slot = write_ahead::log_slot_size(result.max_key_size, config.max_value_size);
  const std::uint64_t usual =
      std::max(least_log_slots, std::min(kDefaultLogSlots, kDefaultLogBytes / slot));
  result.log_slots = given.number("log_slots", usual, least_log_slots, std::uint64_t{1} << 24);
  return result;
}

Shape::Shape(const kv::KvConfig& config, const Parameters& parameters)
    : key_size(config.key_size),
      value_size(config.value_size),
      max_key_size(parameters.max_key_size),
      max_value_size(config.max_value_size),
      records(config.records),
      long_keys(parameters.long_keys),
      buckets(parameters.buckets),
      neighborhood(parameters.neighborhood),
      log_slots(parameters.log_slots) {}

Bytes Shape::log_slot_size() const {
  return write_ahead::log_slot_size(max_key_size, max_value_size);
}
Bytes Shape::object_slot_size() const { return round_up(key_size + max_value_size, kCacheLine); }
Bytes Shape::long_object_slot_size() const {
  return round_up(max_key_size + max_value_size, kCacheLine);
}
Bytes Shape::table_offset() const { return kHeaderSize; }
Bytes Shape::log_offset() const { return round_up(table_offset() + table().size(), kMediaLine); }
Bytes Shape::objects_offset() const {
  return round_up(log_offset() + log_slots * log_slot_size(), kMediaLine);
}
Bytes Shape::object_offset(std::uint64_t object) const {
  const std::uint64_t typical = std::min(object, records);
  return objects_offset() + typical * object_slot_size() +
         (object - typical) * long_object_slot_size();
}

Pool open_pool(Node& node, const std::string& name, std::string_view system, const Shape& shape) {
  std::unique_ptr<pmem::Region> region = node.open_region(name);
  const bool created = region == nullptr;
  if (created) region = node.create_region(name, shape.pool_size(), pmem::Medium::pm);
  PoolHeader header;
  if (region->size() >= kHeaderSize) header = region->read_object<PoolHeader>(0);
  if (header.magic == 0 && region->size() >= shape.pool_size()) {
    header = header_of(system, shape);
    const auto bytes = std::as_bytes(std::span(&header, 1));
    region->write(kWord, bytes.subspan(kWord));
    region->persist(0, sizeof header);
    region->store(0, header.magic);
    region->persist(0, kWord);
    return {std::move(region), created};
  }
  check_header(header, name, system, shape);
  if (region->size() < shape.pool_size()) {
    throw UsageError(fmt::format("pool '{}' has {} bytes, but needs {}; remove it", name,
                                 region->size(), shape.pool_size()));
  }
  // A process that died leaves visible data that may not be durable (docs/restart.md).
  region->persist(0, region->size());
  return {std::move(region), false};
}

}  // namespace perdura::systems::write_ahead
