#include "systems/pfarm/session.h"

#include <algorithm>

#include "systems/bucket_hash/footprint.h"
#include "systems/pfarm/pfarm.h"
#include "systems/pfarm/server.h"

namespace perdura::systems::pfarm {

Task<std::unique_ptr<KvSession>> PFarmSession::connect(Thread& thread, fabric::Address server,
                                                       KvConfig config) {
  const Parameters parameters = Parameters::of(config);
  std::unique_ptr<PFarmSession> session(new PFarmSession(thread, parameters.queue_depth));
  co_await session->Session::connect(server);
  session->geometry_ = geometry_of(session->plan());
  session->level_ = level_of(session->plan());
  session->make_lanes(kNeighborhoodSize);
  co_return session;
}

Task<std::optional<PFarmSession::LookedUp>> PFarmSession::look_up(std::uint32_t lane, Slot key) {
  const std::uint32_t known = level_;
  for (std::uint32_t level = known;; ++level) {
    const std::optional<Search> result = co_await search(lane, geometry_.table(level), key);
    if (!result) co_return std::nullopt;
    // What a sealed bucket does not hold is in the next table, if anywhere.
    if (!result->found && result->sealed) continue;
    if (level > known) {
      const auto state = co_await read_state(lane);
      if (state) level_ = std::max(level_, State::from(*state).level);
    }
    co_return LookedUp{result->found};
  }
}

Task<std::optional<Search>> PFarmSession::search(std::uint32_t lane, Table table, Slot key) {
  std::optional<Search> result =
      co_await read_whole(lane, table.bucket_offset(table.home(key)), kNeighborhoodSize,
                          [&key](auto bytes) { return search_neighborhood(bytes, key); });
  while (result && !result->found) {
    const auto block = table.block(result->link);
    if (!block) break;
    const bool sealed = result->sealed;
    result = co_await read_whole(lane, table.bucket_offset(*block), kBucketSize,
                                 [&key](auto bytes) { return search_block(bytes, key); });
    if (result) result->sealed |= sealed;
  }
  co_return result;
}

}  // namespace perdura::systems::pfarm

namespace perdura::systems {

const KvSystem kPFarmKv{
    .name = pfarm::kName,
    .title = "P-FaRM-KV",
    .paper =
        "Consistent RDMA-Friendly Hashing on Remote Persistent Memory, Liu, Hua and Bai; "
        "section III, after FaRM: Fast Remote Memory, Dragojević et al., NSDI'14",
    .guarantee = "a completed put or delete is durable: the server's CPU has flushed it",
    .level = GuaranteeLevel::durable,
    // A request in the server's memory means nothing until its CPU has put the item into the table.
    .put = {.carrier = persistence::Carrier::send, .replay = false},
    .max_key_size = bucket_hash::kMaxKeySize,
    .max_value_size = bucket_hash::kMaxValueSize,
    .shares_partition = true,
    .footprint = bucket_hash::kFootprint,
    .check = [](const KvConfig& config) { pfarm::Parameters::of(config); },
    .open = bucket_hash::open_partition<pfarm::PFarmServer, pfarm::Parameters>,
    .connect = pfarm::PFarmSession::connect,
};

}  // namespace perdura::systems
