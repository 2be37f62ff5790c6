#include "systems/mojim/layout.h"

#include <fmt/format.h>

#include "platform/base/error.h"
#include "platform/runtime/work.h"

namespace perdura::systems::mojim {

namespace {

constexpr std::uint64_t kMagic = 0x4D494A4F4D445250;  // "PRDMOJIM"
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kSeed = 0x4D4F4A49;

struct LogsHeader {
  std::uint64_t magic = 0;
  std::uint32_t version = 0;
  std::uint32_t crc = 0;
  Shape shape;
};
static_assert(sizeof(LogsHeader) == 56);
static_assert(sizeof(LogsHeader) <= kAppliedOffset);

LogsHeader header_of(const Shape& shape) {
  return {kMagic, kVersion, crc32(kSeed, std::as_bytes(std::span(&shape, 1))), shape};
}

void check(const LogsHeader& found, const std::string& name, const Shape& shape) {
  const LogsHeader wanted = header_of(found.shape);
  if (found.magic != kMagic) {
    throw UsageError(
        fmt::format("'{}' is not a region of Mojim; remove it or choose another name", name));
  }
  if (found.version != kVersion || found.crc != wanted.crc) {
    throw UsageError(fmt::format(
        "the header of region '{}' is damaged or of another version; remove the region", name));
  }
  if (found.shape == shape) return;
  throw UsageError(fmt::format(
      "region '{}' was made with {} bytes, {} logs of {} slots of {} bytes{}; remove it or use its "
      "sizes",
      name, found.shape.size, found.shape.logs, found.shape.slots, found.shape.slot_bytes,
      found.shape.checked != 0 ? " and checksums" : ""));
}

}  // namespace

std::uint32_t checksum(const RequestHeader& header, std::span<const std::byte> data) {
  const auto bytes = std::as_bytes(std::span(&header, 1));
  return crc32(crc32(kSeed, bytes.first(offsetof(RequestHeader, crc))), data);
}

Shape::Shape(const services::MemoryConfig& config, const Parameters& parameters)
    : size(config.size),
      logs(parameters.connections),
      slots(parameters.log_slots),
      slot_bytes(parameters.slot_bytes),
      checked(config.method.has_value()) {}

Bytes Shape::slot_offset(std::uint64_t log, std::uint64_t position) const {
  return kSlotsOffset + log * log_size() + position % slots * slot_size();
}

Bytes Shape::logs_size() const { return kSlotsOffset + logs * log_size(); }

Regions open_regions(Node& node, const std::string& name, const Shape& shape) {
  const std::string logs_name = name + ".logs";
  Regions regions{node.open_region(name), node.open_region(logs_name)};
  // The logs' header is what is written last.
  LogsHeader header;
  if (regions.logs != nullptr && regions.logs->size() >= sizeof header) {
    header = regions.logs->read_object<LogsHeader>(0);
  }
  if (regions.data != nullptr && regions.logs != nullptr && header.magic != 0) {
    check(header, name, shape);
    // A process that died leaves what is visible, not what is durable (docs/restart.md).
    regions.logs->persist(0, regions.logs->size());
    return regions;
  }
  // A file that somebody else has made may hold something.
  regions.created = regions.data == nullptr;
  if (regions.data == nullptr) {
    regions.data = node.create_region(name, shape.size, pmem::Medium::pm);
  }
  if (regions.logs == nullptr) {
    regions.logs = node.create_region(logs_name, shape.logs_size(), pmem::Medium::pm);
  }
  if (regions.data->size() != shape.size || regions.logs->size() != shape.logs_size()) {
    throw UsageError(fmt::format("region '{}' has another size; remove it", name));
  }
  header = header_of(shape);
  regions.logs->write(kWord, std::as_bytes(std::span(&header, 1)).subspan(kWord));
  regions.logs->persist(0, sizeof header);
  regions.logs->store(0, header.magic);
  regions.logs->persist(0, kWord);
  return regions;
}

}  // namespace perdura::systems::mojim
