#include "systems/continuity/server.h"

namespace perdura::systems::continuity {

using bucket_hash::kIndexOffset;
using bucket_hash::Plan;

namespace {

bucket_hash::PoolShape shape_of(const KvConfig& config, const Geometry& geometry) {
  return {config.key_size,
          config.value_size,
          config.records,
          {geometry.pairs, std::uint64_t{geometry.resized_sbuckets} << 32 | geometry.sbuckets,
           geometry.added_percent, geometry.resizes}};
}

Flushing flushing_of(const KvConfig& config) {
  const bool flushes = !config.put_method || config.put_method->uses(pmem::StepKind::flush);
  return flushes ? Flushing::lines : Flushing::none;
}

}  // namespace

ContinuityServer::ContinuityServer(Node& node, const std::string& name, const KvConfig& config,
                                   const Parameters& parameters)
    : Server(name, config, parameters.queue_depth),
      pool_(bucket_hash::open_pool(node, name, kName, shape_of(config, parameters.geometry),
                                   parameters.geometry.size())),
      index_(*pool_.region, kIndexOffset, parameters.geometry, flushing_of(config)) {
  if (!pool_.created) index_.recover();
}

KvSpace ContinuityServer::space() const {
  KvSpace space;
  space.capacity = index_.slots() * kSlotSize;
  space.free = space.capacity - index_.items() * kSlotSize;
  space.resizing = index_.resizing();
  return space;
}

bucket_hash::Server::Readable ContinuityServer::readable() const {
  return {pool_.region.get(), kIndexOffset, index_.geometry().size()};
}

Task<Result<void>> ContinuityServer::put(std::uint32_t worker, Slot item) {
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

Task<Index::Outcome> ContinuityServer::try_put(std::uint32_t worker, Slot item,
                                               std::uint64_t hash) {
  const auto inside = co_await locks_.enter(worker);
  const bucket_hash::LockTable::Held held(locks_, index_.pair_of(hash));
  co_return index_.try_put(item, hash);
}

// Unless another worker, which met a full segment too, has resized the table of this level by now.
Task<> ContinuityServer::resize(std::uint32_t level) {
  const auto everything = co_await locks_.lock_everything();
  if (index_.level() != level) co_return;
  index_.begin_resize();
  while (index_.resize_step()) co_await yield();
}

Task<Result<void>> ContinuityServer::erase(std::uint32_t worker, Slot key) {
  const std::uint64_t hash = hash_of(key);
  const auto inside = co_await locks_.enter(worker);
  const bucket_hash::LockTable::Held held(locks_, index_.pair_of(hash));
  co_return index_.erase(key, hash);
}

// While items are being moved, what is not found in the old table is looked for in the next one.
Plan ContinuityServer::plan() const { return plan_of(index_.geometry(), index_.level()); }

Plan plan_of(const Geometry& geometry, std::uint32_t level) {
  return {geometry.pairs,
          std::uint64_t{geometry.added_percent} << 32 |
              std::uint64_t{geometry.resized_sbuckets} << 16 | geometry.sbuckets,
          std::uint64_t{geometry.resizes} << 32 | level};
}

Geometry geometry_of(const Plan& plan) {
  return {plan[0], static_cast<std::uint16_t>(plan[1]), static_cast<std::uint32_t>(plan[1] >> 32),
          static_cast<std::uint32_t>(plan[2] >> 32), static_cast<std::uint16_t>(plan[1] >> 16)};
}

std::uint32_t level_of(const Plan& plan) { return static_cast<std::uint32_t>(plan[2]); }

}  // namespace perdura::systems::continuity
