#include "systems/erda/layout.h"

#include <fmt/format.h>

#include <cstring>

#include "platform/base/error.h"
#include "platform/runtime/work.h"

namespace perdura::systems::erda {

namespace {

constexpr Bytes kMaxPool = Bytes{1} << 46;
constexpr std::uint8_t kDeleteTag = 1;
constexpr std::uint8_t kExplicitLengths = 2;
constexpr Bytes kCrcOffset = 1;
constexpr Bytes kKeyLengthOffset = 5;
constexpr Bytes kValueLengthOffset = 9;

template <class T>
T load(std::span<const std::byte> from, Bytes offset) {
  T value;
  std::memcpy(&value, from.data() + offset, sizeof value);
  return value;
}

// A different value for every life; 0 for the first.
constexpr std::uint32_t seal_of(std::uint32_t life) { return life * 0x9E3779B1U; }

// The checksum of the flags and of all bytes that follow the checksum.
std::uint32_t object_crc(std::span<const std::byte> object) {
  return crc32(crc32(0, object.first(kCrcOffset)), object.subspan(kShortHeader));
}

}  // namespace

ParameterReader read_parameters(const kv::KvConfig& config) {
  return ParameterReader("erda", kParameterTable, config.parameters);
}

std::uint32_t Superblock::computed_crc() const {
  return crc32(0, std::as_bytes(std::span(this, 1)).first(offsetof(Superblock, crc)));
}

PoolLayout::PoolLayout(const Superblock& shape)
    : shape_(shape),
      table_{.key_size = shape.key_size,
             .neighborhood = static_cast<std::uint32_t>(shape.neighborhood),
             .buckets = shape.buckets} {
  table_offset_ = round_up(kHeadArray + head_array_size(), 4 * KiB);
  regions_offset_ = round_up(table_offset_ + table_.size(), 4 * KiB);
  // A READ of the typical size may begin at the last object even if that is shorter.
  const ObjectFormat format(shape.key_size, shape.value_size);
  size_ = regions_offset_ + shape.regions * shape.region_bytes +
          round_up(format.typical_size(), 4 * KiB);
}

Superblock shape_for(const kv::KvConfig& config) {
  Superblock shape;
  shape.key_size = config.key_size;
  shape.value_size = config.value_size;
  const ParameterReader given = read_parameters(config);
  shape.segment_bytes = given.number<Bytes>("segment_bytes");
  shape.region_bytes = given.number<Bytes>("region_bytes");
  shape.heads = given.number<std::uint64_t>("heads");
  const auto geometry = hopscotch::Geometry::for_records(
      config.records, config.key_size, given.number<std::uint32_t>("neighborhood"));
  shape.buckets = given.number("buckets", geometry.buckets);
  shape.neighborhood = geometry.neighborhood;

  const ObjectFormat format(config.key_size, config.value_size);
  const Bytes largest =
      round_up(format.object_size(config.key_size, config.max_value_size + 1, false), kWord);
  if (shape.segment_bytes % kWord != 0 || shape.segment_bytes == 0 ||
      shape.region_bytes % shape.segment_bytes != 0 || shape.region_bytes == 0 ||
      shape.region_bytes / kWord > kMaxUnits) {
    throw UsageError(fmt::format(
        "erda: region_bytes ({}) must be a multiple of segment_bytes ({}), that of 8, and "
        "a 31-bit offset must reach its end",
        shape.region_bytes, shape.segment_bytes));
  }
  if (largest + kWord > shape.segment_bytes) {
    throw UsageError(fmt::format(
        "erda: a value of {} bytes does not fit into a segment of {}; enlarge systems.erda."
        "segment_bytes",
        config.max_value_size, shape.segment_bytes));
  }
  // By default there is room for every expected write, for the unused ends of segments, for the
  // last region of every head, which may be almost empty, and for cleaning one head.
  const Bytes per_segment = (shape.segment_bytes - kWord) / largest;
  const Bytes segments = (config.writes + per_segment - 1) / per_segment;
  const Bytes per_region = shape.region_bytes / shape.segment_bytes;
  const Bytes written = (segments + per_region - 1) / per_region + shape.heads - 1;
  shape.regions = given.number("regions", written + (written + shape.heads - 1) / shape.heads);
  if (shape.regions <= shape.heads) {
    throw UsageError(
        fmt::format("erda: {} regions are too few for {} heads: each has one, and log cleaning "
                    "needs another",
                    shape.regions, shape.heads));
  }
  if (PoolLayout(shape).size() > kMaxPool) {
    throw UsageError(fmt::format("erda: {} regions of {} bytes are more than a pool can have",
                                 shape.regions, shape.region_bytes));
  }
  shape.crc = shape.computed_crc();
  return shape;
}

Bytes ObjectFormat::encode(kv::Key key, std::optional<kv::Value> value,
                           std::span<std::byte> into) const {
  const Bytes value_length = value ? value->size() : 0;
  const Bytes start = header(key.size(), value_length, !value);
  const Bytes size = start + key.size() + value_length;
  std::uint8_t flags = value ? 0 : kDeleteTag;
  if (start == kLongHeader) {
    flags |= kExplicitLengths;
    const auto lengths = std::array{static_cast<std::uint32_t>(key.size()),
                                    static_cast<std::uint32_t>(value_length)};
    std::memcpy(into.data() + kKeyLengthOffset, lengths.data(), sizeof lengths);
  }
  into[0] = static_cast<std::byte>(flags);
  copy_bytes(into.subspan(start, key.size()), key);
  if (value) copy_bytes(into.subspan(start + key.size(), value_length), *value);
  const std::uint32_t crc = object_crc(into.first(size));
  std::memcpy(into.data() + kCrcOffset, &crc, sizeof crc);
  return size;
}

Bytes ObjectFormat::size_of(std::span<const std::byte> start) const {
  const auto flags = static_cast<std::uint8_t>(start[0]);
  const bool deleted = (flags & kDeleteTag) != 0;
  if ((flags & kExplicitLengths) == 0) return object_size(key_size_, value_size_, deleted);
  return kLongHeader + Bytes{load<std::uint32_t>(start, kKeyLengthOffset)} +
         Bytes{load<std::uint32_t>(start, kValueLengthOffset)};
}

void ObjectFormat::reseal(std::span<std::byte> object, std::uint32_t from_life,
                          std::uint32_t to_life) {
  const std::uint32_t crc =
      load<std::uint32_t>(object, kCrcOffset) ^ seal_of(from_life) ^ seal_of(to_life);
  std::memcpy(object.data() + kCrcOffset, &crc, sizeof crc);
}

std::optional<Bytes> ObjectFormat::key_end(std::span<const std::byte> start, Bytes room) const {
  const auto flags = static_cast<std::uint8_t>(start[0]);
  const Bytes end = (flags & kExplicitLengths) == 0
                        ? kShortHeader + key_size_
                        : kLongHeader + Bytes{load<std::uint32_t>(start, kKeyLengthOffset)};
  return end <= room ? std::optional(end) : std::nullopt;
}

kv::Key ObjectFormat::key_in(std::span<const std::byte> start) const {
  const auto flags = static_cast<std::uint8_t>(start[0]);
  if ((flags & kExplicitLengths) == 0) return start.subspan(kShortHeader, key_size_);
  return start.subspan(kLongHeader, load<std::uint32_t>(start, kKeyLengthOffset));
}

std::optional<ObjectFormat::Object> ObjectFormat::decode(std::span<const std::byte> bytes,
                                                         std::uint32_t life) const {
  const Bytes size = size_of(bytes);
  const auto flags = static_cast<std::uint8_t>(bytes[0]);
  if (size > bytes.size() || (flags & ~(kDeleteTag | kExplicitLengths)) != 0) return std::nullopt;
  const std::span<const std::byte> object = bytes.first(size);
  if ((object_crc(object) ^ seal_of(life)) != load<std::uint32_t>(object, kCrcOffset)) {
    return std::nullopt;
  }
  const bool explicit_lengths = (flags & kExplicitLengths) != 0;
  const Bytes start = explicit_lengths ? kLongHeader : kShortHeader;
  const Bytes key_length =
      explicit_lengths ? Bytes{load<std::uint32_t>(object, kKeyLengthOffset)} : key_size_;
  return Object{(flags & kDeleteTag) != 0, object.subspan(start, key_length),
                object.subspan(start + key_length)};
}

}  // namespace perdura::systems::erda
