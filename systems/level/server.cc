#include "systems/level/server.h"

#include <array>

namespace perdura::systems::level {

using bucket_hash::kIndexOffset;
using bucket_hash::LockTable;
using bucket_hash::Plan;

namespace {

bucket_hash::PoolShape shape_of(const KvConfig& config, const Geometry& geometry) {
  return {config.key_size,
          config.value_size,
          config.records,
          {geometry.buckets, geometry.resizes, geometry.logs, 0}};
}

}  // namespace

LevelServer::LevelServer(Node& node, const std::string& name, const KvConfig& config,
                         const Parameters& parameters)
    : Server(name, config, parameters.queue_depth),
      pool_(bucket_hash::open_pool(node, name, kName, shape_of(config, parameters.geometry),
                                   parameters.geometry.size())),
      index_(*pool_.region, kIndexOffset, parameters.geometry, bucket_hash::flushing_of(config)) {
  if (!pool_.created) index_.recover();
}

KvSpace LevelServer::space() const {
  KvSpace space;
  space.capacity = index_.slots() * kSlotSize;
  space.free = space.capacity - index_.items() * kSlotSize;
  space.resizing = index_.resizing();
  return space;
}

bucket_hash::Server::Readable LevelServer::readable() const {
  return {pool_.region.get(), kIndexOffset, index_.geometry().size()};
}

Task<Result<void>> LevelServer::put(std::uint32_t worker, Slot item) {
  const Hashes hashes = Hashes::of(item);
  for (;;) {
    const std::uint32_t bottom = index_.bottom();
    switch (co_await try_put(worker, item, hashes)) {
      case Index::Outcome::done:
        co_return Result<void>{};
      case Index::Outcome::out_of_space:
        co_return tl::unexpected(Error::out_of_space);
      case Index::Outcome::must_resize:
        co_await resize(bottom);
        break;
      case Index::Outcome::busy:
        break;  // try_put has waited
    }
  }
}

// A movement needs a bucket that is known only on the way. If another worker has it, all locks are
// given back and taken again with that one among them, in order.
Task<Index::Outcome> LevelServer::try_put(std::uint32_t worker, Slot item, Hashes hashes) {
  const auto inside = co_await locks_.enter(worker);
  const std::array<std::uint64_t, 4> candidates = index_.candidates(hashes);
  Index::Writer writer{.number = worker, .busy = candidates[0]};
  for (;;) {
    const std::array<std::uint64_t, 5> buckets{candidates[0], candidates[1], candidates[2],
                                               candidates[3], writer.busy};
    LockTable::Held held(locks_, buckets);
    writer.held = &held;
    const Index::Outcome outcome = index_.try_put(item, hashes, writer);
    if (outcome != Index::Outcome::busy) co_return outcome;
  }
}

// Unless another worker, which found no room either, has resized the table by now.
Task<> LevelServer::resize(std::uint32_t bottom) {
  const auto everything = co_await locks_.lock_everything();
  if (index_.bottom() != bottom) co_return;
  index_.begin_resize();
  while (index_.resize_step()) co_await yield();
}

Task<Result<void>> LevelServer::erase(std::uint32_t worker, Slot key) {
  const Hashes hashes = Hashes::of(key);
  const auto inside = co_await locks_.enter(worker);
  const LockTable::Held held(locks_, index_.candidates(hashes));
  co_return index_.erase(key, hashes);
}

// While items are being moved, what is not found in the bottom level is looked for where they go.
Plan LevelServer::plan() const { return plan_of(index_.geometry(), index_.bottom()); }

Plan plan_of(const Geometry& geometry, std::uint32_t bottom) {
  return {geometry.buckets, std::uint64_t{geometry.logs} << 32 | geometry.resizes, bottom};
}

Geometry geometry_of(const Plan& plan) {
  return {plan[0], static_cast<std::uint32_t>(plan[1]), static_cast<std::uint32_t>(plan[1] >> 32)};
}

std::uint32_t bottom_of(const Plan& plan) { return static_cast<std::uint32_t>(plan[2]); }

}  // namespace perdura::systems::level
