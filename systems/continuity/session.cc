#include "systems/continuity/session.h"

#include <algorithm>

#include "platform/runtime/work.h"
#include "systems/continuity/continuity.h"
#include "systems/continuity/server.h"

namespace perdura::systems::continuity {

Task<std::unique_ptr<KvSession>> ContinuitySession::connect(Thread& thread, fabric::Address server,
                                                            KvConfig config) {
  const Parameters parameters = Parameters::of(config);
  std::unique_ptr<ContinuitySession> session(new ContinuitySession(thread, parameters.queue_depth));
  co_await session->Session::connect(server);
  session->geometry_ = geometry_of(session->plan());
  session->level_ = level_of(session->plan());
  session->make_lanes(session->geometry_.longest_segment());
  co_return session;
}

Task<Result<Bytes>> ContinuitySession::get(Key key, std::span<std::byte> into) {
  if (!Slot::takes_key(key)) co_return tl::unexpected(Error::not_found);
  const Slot wanted = Slot::of(key);
  const Lease held = co_await lease();
  const std::uint32_t known = level_;
  for (std::uint32_t level = known;; ++level) {
    const std::optional<Search> result =
        co_await search(held.lane(), geometry_.table(level), wanted);
    if (!result) co_return tl::unexpected(Error::disconnected);
    // What a sealed pair does not hold is in the next table, if anywhere.
    if (!result->found && (result->indicator & kSealed) != 0) continue;
    if (level > known) co_await look_at_state(held.lane());
    if (!result->found) co_return tl::unexpected(Error::not_found);
    const Value value = result->found->value_bytes();
    if (value.size() > into.size()) co_return tl::unexpected(Error::too_large);
    copy_bytes(into.first(value.size()), value);
    co_return Bytes{value.size()};
  }
}

Task<std::optional<Search>> ContinuitySession::search(std::uint32_t lane, Table table, Slot key) {
  for (;;) {
    const std::optional<Search> result = co_await search_once(lane, table, key);
    if (!result || !result->torn) co_return result;
    ++counts_.torn_reads;
    ++counts_.retries;
  }
}

Task<std::optional<Search>> ContinuitySession::search_once(std::uint32_t lane, Table table,
                                                           Slot key) {
  const Home home = table.home(key);
  const Bytes segment = table.segment_size();
  if (!co_await read(lane, 0, table.segment_offset(home), segment)) co_return std::nullopt;
  const Search found = search_segment(read_bytes(lane, 0, segment), table, home.odd, key);
  const auto group = group_of(found.indicator);
  if (found.torn || found.found || !group) co_return found;
  const Bytes size = table.group_size();
  if (!co_await read(lane, 0, table.group_offset(*group), size)) co_return std::nullopt;
  co_return search_group(read_bytes(lane, 0, size), table, found.indicator, key);
}

// Only when all items have been moved may the old table be forgotten: until then, one that is not
// in the next table may still be in the old one.
Task<> ContinuitySession::look_at_state(std::uint32_t lane) {
  if (!co_await read(lane, 0, kStateOffset, kWord)) co_return;
  std::uint64_t word = 0;
  std::memcpy(&word, read_bytes(lane, 0, kWord).data(), kWord);
  level_ = std::max(level_, State::from(word).level);
}

}  // namespace perdura::systems::continuity

namespace perdura::systems {

namespace {

std::unique_ptr<KvPartition> open(Thread& thread, std::string name, const KvConfig& config) {
  return std::make_unique<bucket_hash::Partition>(
      thread, std::make_shared<continuity::ContinuityServer>(thread.node, name, config,
                                                             continuity::Parameters::of(config)));
}

}  // namespace

const KvSystem kContinuity{
    .name = continuity::kName,
    .title = "Continuity",
    .paper =
        "Consistent RDMA-Friendly Hashing on Remote Persistent Memory, Liu, Hua and Bai; "
        "section II",
    .guarantee = "a completed put or delete is durable: the server's CPU has flushed it",
    .level = GuaranteeLevel::durable,
    // A request in the server's memory means nothing until its CPU has put the item into the table.
    .put = {.carrier = persistence::Carrier::send, .replay = false},
    .max_key_size = bucket_hash::kMaxKeySize,
    .max_value_size = bucket_hash::kMaxValueSize,
    .ordered = false,
    .shares_partition = true,
    .open = open,
    .connect = continuity::ContinuitySession::connect,
};

}  // namespace perdura::systems
