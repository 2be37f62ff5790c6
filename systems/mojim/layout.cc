#include "systems/mojim/layout.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <vector>

#include "platform/base/error.h"
#include "platform/pmem/whole_use.h"
#include "platform/runtime/work.h"

namespace perdura::systems::mojim {

namespace {

constexpr std::uint64_t kMagic = 0x4D494A4F4D445250;  // "PRDMOJIM"
constexpr std::uint16_t kVersion = 1;
constexpr std::uint32_t kSeed = 0x4D4F4A49;

struct LogsHeader {
  std::uint64_t magic = 0;
  std::uint16_t version = 0;
  std::uint16_t on_disk = 0;  // 1: the data area is the region on the disk
  std::uint32_t crc = 0;
  Shape shape;
};
static_assert(sizeof(LogsHeader) == 56 && offsetof(LogsHeader, shape) == 2 * kWord);
static_assert(sizeof(LogsHeader) <= kAppliedOffset);

LogsHeader header_of(const Shape& shape, pmem::Medium medium) {
  const std::uint16_t on_disk = medium == pmem::Medium::disk ? 1 : 0;
  return {kMagic, kVersion, on_disk, crc32(kSeed, std::as_bytes(std::span(&shape, 1))), shape};
}

void check(const LogsHeader& found, const std::string& name, const Shape& shape) {
  const LogsHeader wanted = header_of(found.shape, pmem::Medium::pm);
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

std::string name_on(pmem::Medium medium, const std::string& name) {
  return medium == pmem::Medium::disk ? name + ".disk" : name;
}

// Records durably, in the header of the logs, where the data area is.
void set_medium_of_data(pmem::Region& logs, pmem::Medium medium) {
  auto header = logs.read_object<LogsHeader>(0);
  header.on_disk = medium == pmem::Medium::disk ? 1 : 0;
  const auto words = std::bit_cast<std::array<std::uint64_t, sizeof header / kWord>>(header);
  logs.store(kWord, words[1]);
  logs.persist(kWord, kWord);
}

std::unique_ptr<pmem::Region> open_data(Node& node, const std::string& name, Bytes size,
                                        pmem::Medium medium) {
  auto data = node.open_region(name_on(medium, name));
  if (data == nullptr) data = node.create_region(name_on(medium, name), size, medium);
  if (data->size() != size) {
    throw UsageError(fmt::format("region '{}' has another size; remove it", name));
  }
  return data;
}

// Copies the data area to `medium`, over whatever an earlier life has left there, and then records
// that it has moved. Until that record is durable, the data area is where it was.
std::unique_ptr<pmem::Region> move_data(Node& node, const std::string& name, pmem::Region& logs,
                                        const pmem::Region& from, pmem::Medium medium) {
  constexpr Bytes kAtOnce = 256 * KiB;
  auto data = open_data(node, name, from.size(), medium);
  std::vector<std::byte> bytes(std::min(kAtOnce, from.size()));
  for (Bytes done = 0; done < from.size(); done += bytes.size()) {
    const auto part = std::span(bytes).first(std::min<Bytes>(bytes.size(), from.size() - done));
    from.read(done, part);
    data->write(done, part);
    data->flush(done, part.size());
  }
  data->drain();
  set_medium_of_data(logs, medium);
  return data;
}

}  // namespace

std::unique_ptr<pmem::Region> load_from_disk(Node& node, const std::string& name,
                                             pmem::Region& logs) {
  const auto on_disk = node.open_region(name_on(pmem::Medium::disk, name));
  return move_data(node, name, logs, *on_disk, pmem::Medium::pm);
}

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

Regions open_regions(Node& node, const std::string& name, const Shape& shape, pmem::Medium medium) {
  const std::string logs_name = name + ".logs";
  // Recovery reads all of the logs, and copies are compared whole.
  const auto used = [](std::unique_ptr<pmem::Region> region) {
    if (region != nullptr) pmem::expect_use_of_all(*region);
    return region;
  };
  Regions regions{nullptr, used(node.open_region(logs_name))};
  // The header of the logs is written last.
  LogsHeader header;
  if (regions.logs != nullptr && regions.logs->size() >= sizeof header) {
    header = regions.logs->read_object<LogsHeader>(0);
  }
  const bool is_on_disk = header.magic == 0 ? medium == pmem::Medium::disk : header.on_disk != 0;
  const pmem::Medium found = is_on_disk ? pmem::Medium::disk : pmem::Medium::pm;
  regions.data = used(node.open_region(name_on(found, name)));
  if (regions.data != nullptr && header.magic != 0) {
    check(header, name, shape);
    // The contents that a dead process left are visible, but not necessarily durable
    // (docs/restart.md).
    regions.logs->persist(0, regions.logs->size());
    if (found != medium) {
      regions.data = move_data(node, name, *regions.logs, *regions.data, medium);
    } else if (medium == pmem::Medium::disk) {
      regions.data->persist(0, regions.data->size());
    }
    return regions;
  }
  // A data area that existed without a header of the logs may have contents, so it is not new.
  regions.created = regions.data == nullptr;
  regions.data = used(open_data(node, name, shape.size, medium));
  if (regions.logs == nullptr) {
    regions.logs = used(node.create_region(logs_name, shape.logs_size(), pmem::Medium::pm));
  }
  if (regions.logs->size() != shape.logs_size()) {
    throw UsageError(fmt::format("region '{}' has another size; remove it", name));
  }
  header = header_of(shape, medium);
  regions.logs->write(kWord, std::as_bytes(std::span(&header, 1)).subspan(kWord));
  regions.logs->persist(0, sizeof header);
  regions.logs->store(0, header.magic);
  regions.logs->persist(0, kWord);
  return regions;
}

}  // namespace perdura::systems::mojim
