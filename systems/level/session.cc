#include "systems/level/session.h"

#include <algorithm>

#include "platform/runtime/work.h"
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

Task<Result<Bytes>> LevelSession::get(Key key, std::span<std::byte> into) {
  if (!Slot::takes_key(key)) co_return tl::unexpected(Error::not_found);
  const Slot slot = Slot::of(key);
  const Wanted wanted{slot, Hashes::of(slot)};
  const Lease held = co_await lease();
  const std::uint32_t bottom = bottom_;
  bool later = false;
  std::optional<Search> result = co_await search(held.lane(), bottom + 1, wanted, later);
  if (result && !result->found) {
    result = co_await search(held.lane(), bottom, wanted, later);
  }
  if (!result) co_return tl::unexpected(Error::disconnected);
  if (later) co_await look_at_state(held.lane());
  if (!result->found) co_return tl::unexpected(Error::not_found);
  const Value value = result->found->value_bytes();
  if (value.size() > into.size()) co_return tl::unexpected(Error::too_large);
  copy_bytes(into.first(value.size()), value);
  co_return Bytes{value.size()};
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
  for (;;) {
    if (!co_await read(lane, 0, offset, kBucketSize)) co_return std::nullopt;
    const Search result =
        search_bucket(read_bytes(lane, 0, kBucketSize), wanted.key, wanted.hashes.tag());
    if (!result.torn) co_return result;
    ++counts_.torn_reads;
    ++counts_.retries;
  }
}

// Only when all items have been moved may the old bottom be forgotten: until then, one that is not
// where they go may still be there.
Task<> LevelSession::look_at_state(std::uint32_t lane) {
  if (!co_await read(lane, 0, kStateOffset, kWord)) co_return;
  std::uint64_t word = 0;
  std::memcpy(&word, read_bytes(lane, 0, kWord).data(), kWord);
  bottom_ = std::max(bottom_, State::from(word).bottom);
}

}  // namespace perdura::systems::level

namespace perdura::systems {

namespace {

std::unique_ptr<KvPartition> open(Thread& thread, std::string name, const KvConfig& config) {
  return std::make_unique<bucket_hash::Partition>(
      thread, std::make_shared<level::LevelServer>(thread.node, name, config,
                                                   level::Parameters::of(config)));
}

}  // namespace

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
    .ordered = false,
    .shares_partition = true,
    .open = open,
    .connect = level::LevelSession::connect,
};

}  // namespace perdura::systems
