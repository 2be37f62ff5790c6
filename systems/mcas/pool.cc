#include "systems/mcas/pool.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "platform/base/error.h"
#include "platform/runtime/work.h"

namespace perdura::systems::mcas {

namespace {

constexpr std::uint64_t kMagic = 0x5341434D44525050;  // "PPRDMCAS"
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kHeaderSeed = 0x4D434153;

std::uint32_t crc_of(const PoolHeader& header) {
  const auto bytes = std::as_bytes(std::span(&header, 1));
  return crc32(kHeaderSeed, bytes.subspan(offsetof(PoolHeader, system)));
}

// Without its root, and so without a checksum.
PoolHeader header_of(const PoolShape& shape) {
  PoolHeader header{kMagic, kVersion, 0, {}, shape, 0};
  std::copy_n(kName.begin(), std::min(kName.size(), header.system.size()), header.system.begin());
  return header;
}

void check_header(const PoolHeader& found, const std::string& name, const PoolShape& shape) {
  if (found.magic != kMagic) {
    throw UsageError(
        fmt::format("'{}' is not a pool of {}; remove it or choose another name", name, kName));
  }
  if (found.version != kVersion) {
    throw UsageError(fmt::format("pool '{}' has version {}, this program version {}; remove it",
                                 name, found.version, kVersion));
  }
  if (found.crc != crc_of(found)) {
    throw UsageError(fmt::format("the header of pool '{}' is damaged; remove the pool", name));
  }
  if (!(found.shape == shape)) {
    throw UsageError(fmt::format(
        "pool '{}' was created for other sizes (keys of {}, values of {} up to {} bytes, {} "
        "records, {} granules of {} bytes); remove it or use its sizes",
        name, found.shape.key_size, found.shape.value_size, found.shape.max_value_size,
        found.shape.records, found.shape.granules, found.shape.granule));
  }
}

Bytes size_of(const Parameters& parameters) {
  const RegionAllocator::Extent extent = parameters.extent();
  return extent.first + extent.size();
}

std::unique_ptr<pmem::Region> open_region(Node& node, const std::string& name, Bytes size) {
  std::unique_ptr<pmem::Region> region = node.open_region(name);
  return region ? std::move(region) : node.create_region(name, size, pmem::Medium::pm);
}

}  // namespace

PoolShape PoolShape::of(const KvConfig& config, const Parameters& parameters) {
  const hstore::Shape& engine = parameters.engine;
  return {config.key_size,           config.value_size,  parameters.max_key_size,
          parameters.max_value_size, config.records,     engine.table.first_segment,
          engine.most_segments,      engine.table.hops,  engine.heap.region_size,
          parameters.granule,        parameters.granules};
}

Pool::Pool(Node& node, const std::string& name, const KvConfig& config,
           const Parameters& parameters)
    : region_(open_region(node, name, size_of(parameters))),
      memory_(*region_, flushing_of(config)),
      regions_(memory_, kAllocatorOffset, parameters.extent()),
      engine_(memory_, regions_, kPool, parameters.engine) {
  const PoolShape shape = PoolShape::of(config, parameters);
  PoolHeader header;
  if (region_->size() >= sizeof header) header = region_->read_object<PoolHeader>(0);
  if (header.magic == 0 && region_->size() >= size_of(parameters)) {
    create(header_of(shape));
    return;
  }
  check_header(header, name, shape);
  if (region_->size() < size_of(parameters)) {
    throw UsageError(fmt::format("pool '{}' has {} bytes, but needs {}; remove it", name,
                                 region_->size(), size_of(parameters)));
  }
  // A process that died leaves what is visible, not what is durable (docs/restart.md).
  memory_.persist({0, sizeof header});
  undone_region_change_ = regions_.recover();
  recovered_ = engine_.recover(header.root);
}

void Pool::create(PoolHeader header) {
  regions_.format();
  header.root = engine_.create().value();  // Parameters::of() has made sure that there is room
  header.crc = crc_of(header);
  region_->write(kWord, std::as_bytes(std::span(&header, 1)).subspan(kWord));
  memory_.persist({0, sizeof header});
  region_->store(0, header.magic);
  memory_.persist({0, kWord});
}

std::string Pool::audit() const {
  const std::string problem = regions_.audit();
  return problem.empty() ? engine_.audit() : problem;
}

}  // namespace perdura::systems::mcas
