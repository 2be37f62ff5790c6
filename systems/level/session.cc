#include "systems/level/session.h"

#include <algorithm>

#include "systems/bucket_hash/footprint.h"
#include "systems/level/level.h"
#include "systems/level/server.h"

namespace perdura::systems::level {

Task<std::unique_ptr<KvSession>> LevelSession::connect(Thread& thread, fabric::Address server,
                                                       KvConfig config) {
  const Parameters parameters = Parameters::of(config);
  std::unique_ptr<LevelSession> session(new LevelSession(thread, parameters.queue_depth));
  co_await session->Session::connect(server);
  session->geometry_ = geometry_of(session->plan());
  session->bottom_ = bottom_of(session->plan());
  session->make_lanes(kBucketSize);
  co_return session;
}

Task<std::optional<LevelSession::LookedUp>> LevelSession::look_up(std::uint32_t lane, Slot key) {
  const Wanted wanted{key, Hashes::of(key)};
  const std::uint32_t bottom = bottom_;
  bool later = false;
  std::optional<Search> result = co_await search(lane, bottom + 1, wanted, later);
  if (result && !result->found) result = co_await search(lane, bottom, wanted, later);
  if (!result) co_return std::nullopt;
  if (later) {
    const auto state = co_await read_state(lane);
    if (state) bottom_ = std::max(bottom_, State::from(*state).bottom);
  }
  co_return LookedUp{result->found};
}

// An item moves only from its first bucket of a level to the second, and from either to the next
// level but one, where it is before it is gone: who looks in this order cannot miss it.
Task<std::optional<Search>> LevelSession::search(std::uint32_t lane, std::uint32_t level,
                                                 Wanted wanted, bool& later) {
  for (;; level += 2) {
    const std::optional<Search> result = co_await search_level(lane, level, wanted);
    if (!result || result->found || !result->sealed) co_return result;
    later = true;
  }
}

Task<std::optional<Search>> LevelSession::search_level(std::uint32_t lane, std::uint32_t level,
                                                       Wanted wanted) {
  const Level used = geometry_.level(level);
  const std::optional<Search> first =
      co_await search_bucket_at(lane, used.candidate_offset(wanted.hashes, Side::first), wanted);
  if (!first || first->found) co_return first;
  std::optional<Search> second =
      co_await search_bucket_at(lane, used.candidate_offset(wanted.hashes, Side::second), wanted);
  if (second) second->sealed |= first->sealed;
  co_return second;
}

Task<std::optional<Search>> LevelSession::search_bucket_at(std::uint32_t lane, Bytes offset,
                                                           Wanted wanted) {
  co_return co_await read_whole(lane, offset, kBucketSize, [&wanted](auto bytes) {
    return search_bucket(bytes, wanted.key, wanted.hashes.tag());
  });
}

}  // namespace perdura::systems::level

namespace perdura::systems {

const KvSystem kLevel{
    .name = level::kName,
    .title = "Level",
    .paper =
        "Write-Optimized and High-Performance Hashing Index Scheme for Persistent Memory, Zuo, Hua "
        "and Wu; section 3; its RDMA procedures: Consistent RDMA-Friendly Hashing on Remote "
        "Persistent Memory, Liu, Hua and Bai; section III",
    .guarantee = "a completed put or delete is durable: the server's CPU has flushed it",
    .level = GuaranteeLevel::durable,
    // A request in the server's memory means nothing until its CPU has put the item into the table.
    .put = {.carrier = persistence::Carrier::send, .replay = false},
    .max_key_size = bucket_hash::kMaxKeySize,
    .max_value_size = bucket_hash::kMaxValueSize,
    .shares_partition = true,
    .footprint = bucket_hash::kFootprint,
    .check = [](const KvConfig& config) { level::Parameters::of(config); },
    .open = bucket_hash::open_partition<level::LevelServer, level::Parameters>,
    .connect = level::LevelSession::connect,
};

}  // namespace perdura::systems
