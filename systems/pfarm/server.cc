#include "systems/pfarm/server.h"

namespace perdura::systems::pfarm {

using bucket_hash::kIndexOffset;
using bucket_hash::Plan;

namespace {

bucket_hash::PoolShape shape_of(const KvConfig& config, const Geometry& geometry) {
  return {config.key_size,
          config.value_size,
          config.records,
          {geometry.homes, geometry.overflow_percent, geometry.resizes, geometry.logs}};
}

}  // namespace

PFarmServer::PFarmServer(Node& node, const std::string& name, const KvConfig& config,
                         const Parameters& parameters)
    : Server(name, config, parameters.queue_depth),
      pool_(bucket_hash::open_pool(node, name, kName, shape_of(config, parameters.geometry),
                                   parameters.geometry.size())),
      index_(*pool_.region, kIndexOffset, parameters.geometry, bucket_hash::flushing_of(config)) {
  if (!pool_.created) index_.recover();
}

KvSpace PFarmServer::space() const {
  KvSpace space;
  space.capacity = index_.slots() * kSlotSize;
  space.free = space.capacity - index_.items() * kSlotSize;
  space.resizing = index_.resizing();
  return space;
}

bucket_hash::Server::Readable PFarmServer::readable() const {
  return {pool_.region.get(), kIndexOffset, index_.geometry().size()};
}

Task<Result<void>> PFarmServer::put(std::uint32_t worker, Slot item) {
  const std::uint64_t hash = hash_of(item);
  for (;;) {
    const std::uint32_t level = index_.level();
    switch (co_await try_put(worker, item, hash)) {
      case Index::Outcome::done:
        co_return Result<void>{};
      case Index::Outcome::out_of_space:
        co_return tl::unexpected(Error::out_of_space);
      case Index::Outcome::must_resize:
        co_await resize(level);
    }
  }
}

// The locks are those of buckets; that of the home bucket is also its chain's.
Task<Index::Outcome> PFarmServer::try_put(std::uint32_t worker, Slot item, std::uint64_t hash) {
  const auto inside = co_await locks_.enter(worker);
  const bucket_hash::LockTable::Held held(locks_, index_.touched_by_put(hash));
  co_return index_.try_put(item, hash, worker);
}

// Unless another worker, which found no room either, has resized the table of this level by now.
Task<> PFarmServer::resize(std::uint32_t level) {
  const auto everything = co_await locks_.lock_everything();
  if (index_.level() != level) co_return;
  index_.begin_resize();
  while (index_.resize_step()) co_await yield();
}

Task<Result<void>> PFarmServer::erase(std::uint32_t worker, Slot key) {
  const std::uint64_t hash = hash_of(key);
  const auto inside = co_await locks_.enter(worker);
  const bucket_hash::LockTable::Held held(locks_, index_.touched_by_erase(hash));
  co_return index_.erase(key, hash, worker);
}

// While items are being moved, what is not found in the old table is looked for in the next one.
Plan PFarmServer::plan() const { return plan_of(index_.geometry(), index_.level()); }

Plan plan_of(const Geometry& geometry, std::uint32_t level) {
  return {geometry.homes, std::uint64_t{geometry.logs} << 32 | geometry.overflow_percent,
          std::uint64_t{geometry.resizes} << 32 | level};
}

Geometry geometry_of(const Plan& plan) {
  return {plan[0], static_cast<std::uint32_t>(plan[1]), static_cast<std::uint32_t>(plan[2] >> 32),
          static_cast<std::uint32_t>(plan[1] >> 32)};
}

std::uint32_t level_of(const Plan& plan) { return static_cast<std::uint32_t>(plan[2]); }

}  // namespace perdura::systems::pfarm
