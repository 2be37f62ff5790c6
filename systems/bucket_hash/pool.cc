#include "systems/bucket_hash/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "platform/base/error.h"
#include "platform/runtime/work.h"

namespace perdura::systems::bucket_hash {

namespace {

constexpr std::uint64_t kMagic = 0x4853484344525050;  // "PPRDCHSH"
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kHeaderSeed = 0x42484153;

struct Header {
  std::uint64_t magic = 0;
  std::uint32_t version = 0;
  std::uint32_t crc = 0;
  std::array<char, 16> system{};
  PoolShape shape;
};
static_assert(offsetof(Header, system) == 16 && sizeof(Header) <= kIndexOffset);

std::uint32_t crc_of(const Header& header) {
  return crc32(kHeaderSeed, std::as_bytes(std::span(&header, 1)).subspan(offsetof(Header, system)));
}

Header header_of(std::string_view system, const PoolShape& shape) {
  Header header{kMagic, kVersion, 0, {}, shape};
  std::copy_n(system.begin(), std::min(system.size(), header.system.size()), header.system.begin());
  header.crc = crc_of(header);
  return header;
}

void check_header(const Header& found, const std::string& name, std::string_view system,
                  const PoolShape& shape) {
  if (found.magic != kMagic) {
    throw UsageError(
        fmt::format("'{}' is not a pool of {}; remove it or choose another name", name, system));
  }
  if (found.version != kVersion) {
    throw UsageError(fmt::format("pool '{}' has version {}, this program version {}; remove it",
                                 name, found.version, kVersion));
  }
  if (found.crc != crc_of(found)) {
    throw UsageError(fmt::format("the header of pool '{}' is damaged; remove the pool", name));
  }
  if (found.system != header_of(system, shape).system) {
    throw UsageError(fmt::format(
        "pool '{}' belongs to {}, not to {}; choose another name", name,
        std::string_view(found.system.data(), strnlen(found.system.data(), found.system.size())),
        system));
  }
  if (!(found.shape == shape)) {
    throw UsageError(fmt::format(
        "pool '{}' was created for other sizes (keys of {}, values of {} bytes, {} records, table "
        "{}); remove it or use its sizes",
        name, found.shape.key_size, found.shape.value_size, found.shape.records,
        fmt::join(found.shape.geometry, "/")));
  }
}

}  // namespace

Pool open_pool(Node& node, const std::string& name, std::string_view system, const PoolShape& shape,
               Bytes index_size) {
  const Bytes size = kIndexOffset + index_size;
  std::unique_ptr<pmem::Region> region = node.open_region(name);
  if (!region) region = node.create_region(name, size, pmem::Medium::pm);
  Header header;
  if (region->size() >= sizeof header) header = region->read_object<Header>(0);
  if (header.magic == 0 && region->size() >= size) {
    header = header_of(system, shape);
    region->write(kWord, std::as_bytes(std::span(&header, 1)).subspan(kWord));
    region->persist(0, sizeof header);
    region->store(0, header.magic);
    region->persist(0, kWord);
    return {std::move(region), true};
  }
  check_header(header, name, system, shape);
  if (region->size() < size) {
    throw UsageError(
        fmt::format("pool '{}' has {} bytes, but needs {}; remove it", name, region->size(), size));
  }
  // A process that died leaves visible data that may not be durable (docs/restart.md).
  region->persist(0, region->size());
  return {std::move(region), false};
}

}  // namespace perdura::systems::bucket_hash
