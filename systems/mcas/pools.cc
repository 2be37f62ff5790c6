#include "systems/mcas/pools.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "platform/base/error.h"
#include "platform/base/report_line.h"
#include "platform/runtime/executor.h"
#include "platform/runtime/work.h"
#include "systems/mcas/allocations.h"

namespace perdura::systems::mcas {

namespace {

constexpr std::uint64_t kMagic = 0x5341434D44525050;  // "PPRDMCAS"
constexpr std::uint32_t kVersion = 2;
constexpr std::uint32_t kHeaderSeed = 0x4D434153;

// Bytes of a removed pool that are overwritten before other tasks get a turn.
constexpr Bytes kOverwrittenAtOnce = MiB;

std::uint32_t crc_of(const MemoryHeader& header) {
  const auto bytes = std::as_bytes(std::span(&header, 1));
  return crc32(kHeaderSeed, bytes.subspan(offsetof(MemoryHeader, system)));
}

MemoryHeader header_of(const MemoryShape& shape) {
  MemoryHeader header{kMagic, kVersion, 0, {}, shape};
  std::copy_n(kName.begin(), std::min(kName.size(), header.system.size()), header.system.begin());
  header.crc = crc_of(header);
  return header;
}

// Lists the differences with the names of parameters: "granule is 16 in it, here 8".
std::string difference(const MemoryShape& found, const MemoryShape& here) {
  std::vector<std::string> differing;
  const auto compare = [&](std::string_view name, std::uint64_t in_it, std::uint64_t wanted) {
    if (in_it == wanted) return;
    differing.push_back(fmt::format("{} is {} in it, here {}", name, in_it, wanted));
  };
  compare("memory for pools", found.granules * found.granule, here.granules * here.granule);
  compare("key_size", found.planned.key_size, here.planned.key_size);
  compare("value_size", found.planned.value_size, here.planned.value_size);
  compare("records", found.planned.records, here.planned.records);
  compare("max_key_size", found.max_key_size, here.max_key_size);
  compare("the longest value of a message", found.max_value_size, here.max_value_size);
  compare("first_segment", found.first_segment, here.first_segment);
  compare("segments", found.most_segments, here.most_segments);
  compare("neighborhood", found.hops, here.hops);
  compare("heap_region", found.heap_region, here.heap_region);
  compare("granule", found.granule, here.granule);
  compare("pools", found.pools, here.pools);
  return fmt::format("{}", fmt::join(differing, ", "));
}

void check_header(const MemoryHeader& found, const std::string& name, const MemoryShape& shape) {
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
  if (found.shape.engine != shape.engine) {
    throw UsageError(fmt::format(
        "pool '{}' was created for another engine; remove it or use that engine", name));
  }
  if (!(found.shape == shape)) {
    throw UsageError(
        fmt::format("pool '{}' was created for other sizes ({}); remove it or use its sizes", name,
                    difference(found.shape, shape)));
  }
}

// Visits the clients' keys, but not those of allocations.
template <class Visit>
void for_each_key(const Engine& engine, Visit visit) {
  engine.iterate([&](Key key, ByteRange) {
    if (!is_allocation(key)) visit(key);
  });
}

std::uint64_t count_keys(const Engine& engine) {
  std::uint64_t count = 0;
  for_each_key(engine, [&](Key) { ++count; });
  return count;
}

auto damaged(const std::string& what) {
  return tl::unexpected(objects::Failure(objects::Error::failed, what));
}

Bytes size_of(const Parameters& parameters) {
  const RegionAllocator::Extent extent = parameters.extent();
  return extent.first + extent.size();
}

}  // namespace

MemoryShape MemoryShape::of(const Parameters& parameters) {
  const hstore::Shape& engine = parameters.engine;
  return {parameters.planned,
          parameters.max_key_size,
          parameters.max_value_size,
          engine.table.first_segment,
          engine.most_segments,
          engine.table.hops,
          engine.heap.region_size,
          parameters.granule,
          parameters.granules,
          parameters.pools,
          static_cast<std::uint64_t>(parameters.kind)};
}

void Pool::add_to_index(Key key) {
  if (index && !is_allocation(key)) index->insert(key);
}

void Pool::note_erased(Key key) {
  note_space();
  if (index && !is_allocation(key)) index->erase(key);
}

// --- the shard's memory --------------------------------------------------------------------------

std::unique_ptr<pmem::Region> open_memory(Node& node, const std::string& name,
                                          const Parameters& parameters) {
  std::unique_ptr<pmem::Region> region = node.open_region(name);
  return region ? std::move(region)
                : node.create_region(name, size_of(parameters), pmem::Medium::pm);
}

Pools::Pools(pmem::Region& region, const Parameters& parameters)
    : region_(&region),
      memory_(region, parameters.flushing),
      engine_kind_(parameters.kind),
      engine_shape_(parameters.engine),
      catalog_(memory_, kCatalogOffset, parameters.pools),
      regions_(memory_, parameters.allocator_offset(), parameters.extent()),
      open_(parameters.pools),
      damage_(parameters.pools) {
  const MemoryShape shape = MemoryShape::of(parameters);
  MemoryHeader header;
  if (region_->size() >= sizeof header) header = region_->read_object<MemoryHeader>(0);
  if (header.magic == 0 && region_->size() >= size_of(parameters)) {
    create_memory(shape);
    return;
  }
  check_header(header, region.name(), shape);
  if (region_->size() < size_of(parameters)) {
    throw UsageError(fmt::format("pool '{}' has {} bytes, but needs {}; remove it", region.name(),
                                 region_->size(), size_of(parameters)));
  }
  recover();
}

void Pools::create_memory(const MemoryShape& shape) {
  regions_.format();
  catalog_.format();
  const MemoryHeader header = header_of(shape);
  region_->write(kWord, std::as_bytes(std::span(&header, 1)).subspan(kWord));
  memory_.persist({0, sizeof header});
  region_->store(0, header.magic);
  memory_.persist({0, kWord});
}

void Pools::recover() {
  // A process that died leaves what is visible, not what is durable (docs/restart.md).
  memory_.persist({0, sizeof(MemoryHeader)});
  undone_region_change_ = regions_.recover();
  catalog_.recover();
  std::set<std::uint64_t> owners;
  for (Catalog::SlotNumber slot = 0; slot < catalog_.entries().size(); ++slot) {
    const Catalog::PoolEntry& entry = catalog_.entries()[slot];
    if (entry.phase == Catalog::Phase::exists) {
      owners.insert(entry.identifier);
      regions_.set_limit(entry.identifier, entry.limit);
    } else if (entry.phase == Catalog::Phase::being_removed) {
      for (const ByteRange& region : regions_.regions_of(entry.identifier)) overwrite(region);
      memory_.drain();
      release_regions(entry.identifier);
      catalog_.end_removal(slot);
    }
  }
  // Release the memory of pools whose creation was interrupted by the failure.
  std::set<std::uint64_t> orphans;
  regions_.for_each([&](const RegionDescriptor& one) {
    if (one.identifier != kFree && !owners.contains(one.identifier)) orphans.insert(one.identifier);
  });
  for (const std::uint64_t identifier : orphans) release_regions(identifier);
}

// --- pools ---------------------------------------------------------------------------------------

Pools::Result<Pool*> Pools::create(std::string_view name, Bytes limit) {
  if (name.empty() || name.size() > CatalogSlot::kLongestName ||
      name.find('\0') != std::string_view::npos) {
    return tl::unexpected(objects::Error::invalid);
  }
  if (catalog_.find(name)) return tl::unexpected(objects::Error::exists);
  const std::optional<Catalog::SlotNumber> slot = catalog_.find_free();
  if (!slot || limit == 0)
    return tl::unexpected(slot ? objects::Error::invalid : objects::Error::out_of_space);
  limit = std::min(limit, regions_.capacity());
  const std::uint64_t identifier = catalog_.next_identifier();
  regions_.set_limit(identifier, limit);
  std::unique_ptr<Engine> engine = make_engine(identifier);
  const std::optional<Bytes> root = engine->create();
  if (!root) {
    release_regions(identifier);
    return tl::unexpected(objects::Error::out_of_space);
  }
  catalog_.add(*slot, name, identifier, *root, limit);
  return &add(*slot, std::move(engine));
}

Pools::Result<Pool*> Pools::open(std::string_view name) {
  const std::optional<Catalog::SlotNumber> slot = catalog_.find(name);
  if (!slot) return tl::unexpected(objects::Error::not_found);
  if (open_[*slot] && !open_[*slot]->damage.empty()) return damaged(open_[*slot]->damage);
  if (open_[*slot]) return open_[*slot].get();
  if (!damage_[*slot].empty()) return damaged(damage_[*slot]);
  const Catalog::PoolEntry& entry = catalog_.entries()[*slot];
  std::unique_ptr<Engine> engine = make_engine(entry.identifier);
  try {
    const Engine::Recovered recovered = engine->recover(entry.root);
    Pool& pool = add(*slot, std::move(engine));
    pool.recovered = recovered;
    if (entry.has_index) fill_index(pool);
    return &pool;
  } catch (const DamagedPool& problem) {
    open_[*slot].reset();
    damage_[*slot] = tell_damage(*slot, problem);
    return damaged(damage_[*slot]);
  }
}

void Pools::close_damaged(Pool& pool, const DamagedPool& damage) const {
  if (pool.damage.empty()) pool.damage = tell_damage(pool.slot, damage);
}

// Clients choose the names of pools; escaping keeps each name within its line.
std::string Pools::tell_damage(Catalog::SlotNumber slot, const DamagedPool& damage) const {
  report_line(
      fmt::format("perdura: shard '{}', pool {:?}: it is damaged, as {}; it is not served "
                  "any more: delete it, and put its data anew",
                  region_->name(), catalog_.entries()[slot].name, damage.what()));
  return fmt::format("the pool is damaged: {}", damage.what());
}

Pool* Pools::opened(std::string_view name) const {
  const std::optional<Catalog::SlotNumber> slot = catalog_.find(name);
  return slot ? open_[*slot].get() : nullptr;
}

std::vector<ByteRange> Pools::parts_of(const Pool& pool) const {
  std::vector<ByteRange> parts;
  for (const ByteRange& region : regions_.regions_of(pool.identifier)) {
    if (!parts.empty() && parts.back().end() == region.offset) {
      parts.back().length += region.length;
    } else {
      parts.push_back(region);
    }
  }
  return parts;
}

Task<Pools::Result<void>> Pools::remove(std::string_view name) {
  const std::optional<Catalog::SlotNumber> slot = catalog_.find(name);
  if (!slot) co_return tl::unexpected(objects::Error::not_found);
  if (open_[*slot] && open_[*slot]->users > 0) co_return tl::unexpected(objects::Error::busy);
  const std::uint64_t identifier = catalog_.entries()[*slot].identifier;
  open_[*slot].reset();
  damage_[*slot].clear();
  catalog_.begin_removal(*slot);
  for (const ByteRange& region : regions_.regions_of(identifier)) {
    for (Bytes done = 0; done < region.length; done += kOverwrittenAtOnce) {
      overwrite({region.offset + done, std::min(kOverwrittenAtOnce, region.length - done)});
      co_await yield();
    }
  }
  memory_.drain();
  release_regions(identifier);
  catalog_.end_removal(*slot);
  co_return Result<void>{};
}

void Pools::set_index(Pool& pool, bool wanted) {
  if (wanted == (pool.index != nullptr)) return;
  catalog_.set_has_index(pool.slot, wanted);
  pool.index.reset();
  if (wanted) fill_index(pool);
}

void Pools::fill_index(Pool& pool) {
  pool.index = index::make_index(kIndexName);
  for_each_key(*pool.engine, [&](Key key) { pool.index->insert(key); });
}

std::unique_ptr<Engine> Pools::make_engine(std::uint64_t identifier) {
  return mcas::make_engine(engine_kind_, memory_, regions_, identifier, engine_shape_);
}

Pool& Pools::add(Catalog::SlotNumber slot, std::unique_ptr<Engine> engine) {
  const Catalog::PoolEntry& entry = catalog_.entries()[slot];
  open_[slot] = std::make_unique<Pool>();
  Pool& pool = *open_[slot];
  pool.slot = slot;
  pool.identifier = entry.identifier;
  pool.limit = entry.limit;
  pool.engine = std::move(engine);
  pool.note_space();
  return pool;
}

void Pools::release_regions(std::uint64_t identifier) {
  for (const ByteRange& region : regions_.regions_of(identifier)) regions_.release(region);
}

// Durable after the next drain().
void Pools::overwrite(ByteRange range) {
  static constexpr std::array<std::byte, 4 * KiB> kZeros{};
  for (Bytes done = 0; done < range.length; done += kZeros.size()) {
    const Bytes length = std::min<Bytes>(kZeros.size(), range.length - done);
    region_->write_streaming(range.offset + done, std::span(kZeros).first(length));
  }
}

// --- statistics and audit ------------------------------------------------------------------------

std::uint64_t Pools::count() const {
  return static_cast<std::uint64_t>(std::count_if(
      catalog_.entries().begin(), catalog_.entries().end(),
      [](const Catalog::PoolEntry& one) { return one.phase == Catalog::Phase::exists; }));
}

std::string Pools::audit() {
  if (std::string problem = regions_.audit(); !problem.empty()) return problem;
  std::set<std::uint64_t> owners;
  for (const Catalog::PoolEntry& entry : catalog_.entries()) {
    if (entry.phase == Catalog::Phase::being_removed) owners.insert(entry.identifier);
    if (entry.phase != Catalog::Phase::exists) continue;
    owners.insert(entry.identifier);
    const auto opened = open(entry.name);
    if (!opened) return fmt::format("pool '{}': {}", entry.name, opened.error().reason);
    const Pool& pool = **opened;
    const std::string problem = pool.damage.empty() ? pool.engine->audit() : pool.damage;
    if (!problem.empty()) return fmt::format("pool '{}': {}", entry.name, problem);
    if (pool.index && pool.index->count() != count_keys(*pool.engine)) {
      return fmt::format("pool '{}': its index has other keys", entry.name);
    }
  }
  std::string problem;
  regions_.for_each([&](const RegionDescriptor& one) {
    if (one.identifier != kFree && !owners.contains(one.identifier)) {
      problem = "memory of the shard belongs to a pool that is not there";
    }
  });
  return problem;
}

}  // namespace perdura::systems::mcas
