#include "systems/mcas/partition.h"

#include <fmt/core.h>

#include "platform/base/error.h"

namespace perdura::systems::mcas {

namespace {

// Opens the pool, or creates it: a failure may have come between the creation of the memory and
// that of the pool. Parameters::of() has checked that there is room.
Pool& pool_of(Pools& pools) {
  const auto there = pools.open(kPartitionPool);
  if (!there && there.error() == objects::Error::failed) {
    throw UsageError(
        fmt::format("pool '{}': {}; remove it", pools.region().name(), there.error().reason));
  }
  Pool& pool = there ? **there : *pools.create(kPartitionPool, pools.capacity()).value();
  ++pool.users;
  return pool;
}

}  // namespace

Partition::Partition(std::shared_ptr<Shard> shard)
    : shard_(std::move(shard)),
      pool_(pool_of(shard_->pools())),
      capacity_(pool_.engine->statistics().capacity) {}

kv::KvSpace Partition::space() const {
  kv::KvSpace space;
  space.capacity = capacity_;
  space.free = pool_.free.load(std::memory_order_relaxed);
  space.resizing = shard_->growth().under_way();
  space.steps = shard_->growth().steps();
  return space;
}

std::vector<std::uint64_t> Partition::events() const {
  const EngineStatistics counts = pool_.engine->statistics();
  return {counts.segments_added,
          counts.moved_items,
          counts.regions_added,
          counts.heap_regions_returned,
          shard_->pools().undone_region_change() ? 1U : 0U,
          pool_.recovered.stale_hops,
          pool_.recovered.stale_entries};
}

std::vector<double> Partition::metrics() const {
  const EngineStatistics counts = pool_.engine->statistics();
  return {static_cast<double>(counts.segments_added), static_cast<double>(counts.moved_items),
          static_cast<double>(counts.heap_regions_returned)};
}

}  // namespace perdura::systems::mcas
