#include "systems/continuity/session.h"

#include <algorithm>

#include "systems/bucket_hash/footprint.h"
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

Task<std::optional<ContinuitySession::LookedUp>> ContinuitySession::look_up(std::uint32_t lane,
                                                                            Slot key) {
  const std::uint32_t known = level_;
  for (std::uint32_t level = known;; ++level) {
    const std::optional<Search> result = co_await search(lane, geometry_.table(level), key);
    if (!result) co_return std::nullopt;
    // What a sealed pair does not hold is in the next table, if anywhere.
    if (!result->found && (result->indicator & kSealed) != 0) continue;
    if (level > known) {
      const auto state = co_await read_state(lane);
      if (state) level_ = std::max(level_, State::from(*state).level);
    }
    co_return LookedUp{result->found};
  }
}

Task<std::optional<Search>> ContinuitySession::search(std::uint32_t lane, Table table, Slot key) {
  for (;;) {
    const std::optional<Search> result = co_await search_once(lane, table, key);
    if (!result || !result->torn) co_return result;
    count_torn_read();
  }
}

Task<std::optional<Search>> ContinuitySession::search_once(std::uint32_t lane, Table table,
                                                           Slot key) {
  const Home home = table.home(key);
  const Bytes segment = table.segment_size();
  if (!co_await read(lane, table.segment_offset(home), segment)) co_return std::nullopt;
  const Search found = search_segment(read_bytes(lane, segment), table, home.odd, key);
  const auto group = group_of(found.indicator);
  if (found.torn || found.found || !group) co_return found;
  const Bytes size = table.group_size();
  if (!co_await read(lane, table.group_offset(*group), size)) co_return std::nullopt;
  co_return search_group(read_bytes(lane, size), table, found, key);
}

}  // namespace perdura::systems::continuity

namespace perdura::systems {

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
    .shares_partition = true,
    .footprint = bucket_hash::kFootprint,
    .check = [](const KvConfig& config) { continuity::Parameters::of(config); },
    .open = bucket_hash::open_partition<continuity::ContinuityServer, continuity::Parameters>,
    .connect = continuity::ContinuitySession::connect,
};

}  // namespace perdura::systems
