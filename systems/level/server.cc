#include "systems/level/server.h"

namespace perdura::systems::level {

using bucket_hash::kIndexOffset;
using bucket_hash::Plan;

namespace {

bucket_hash::PoolShape shape_of(const KvConfig& config, const Geometry& geometry) {
  return {config.key_size,
          config.value_size,
          config.records,
          {geometry.buckets, geometry.resizes, 0, 0}};
}

Flushing flushing_of(const KvConfig& config) {
  const bool flushes = !config.put_method || config.put_method->uses(pmem::StepKind::flush);
  return flushes ? Flushing::lines : Flushing::none;
}

}  // namespace

LevelServer::LevelServer(Thread& thread, const std::string& name, const KvConfig& config,
                         const Parameters& parameters)
    : Server(thread, name, config.sessions, parameters.queue_depth),
      pool_(bucket_hash::open_pool(thread.node, name, kName, shape_of(config, parameters.geometry),
                                   parameters.geometry.size())),
      index_(*pool_.region, kIndexOffset, parameters.geometry, flushing_of(config)),
      index_memory_(thread.endpoint.register_memory(
          *pool_.region, kIndexOffset, parameters.geometry.size(), fabric::Access::remote_read)) {
  if (!pool_.created) index_.recover();
}

KvSpace LevelServer::space() const {
  KvSpace space;
  space.capacity = index_.slots() * kSlotSize;
  space.free = space.capacity - index_.items() * kSlotSize;
  return space;
}

Task<Result<void>> LevelServer::put(Slot item) {
  for (;;) {
    switch (index_.try_put(item)) {
      case Index::Outcome::done:
        co_return Result<void>{};
      case Index::Outcome::out_of_space:
        co_return tl::unexpected(Error::out_of_space);
      case Index::Outcome::must_resize:
        index_.begin_resize();
        while (index_.resize_step()) co_await yield();
    }
  }
}

Task<Result<void>> LevelServer::erase(Slot key) { co_return index_.erase(key); }

// While items are being moved, what is not found in the bottom level is looked for where they go.
Plan LevelServer::plan() const { return plan_of(index_.geometry(), index_.bottom()); }

Plan plan_of(const Geometry& geometry, std::uint32_t bottom) {
  return {geometry.buckets, geometry.resizes, bottom};
}

Geometry geometry_of(const Plan& plan) { return {plan[0], static_cast<std::uint32_t>(plan[1])}; }

std::uint32_t bottom_of(const Plan& plan) { return static_cast<std::uint32_t>(plan[2]); }

}  // namespace perdura::systems::level
