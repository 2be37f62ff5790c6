#include "systems/pfarm/session.h"

#include <algorithm>

#include "platform/runtime/work.h"
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

Task<Result<Bytes>> PFarmSession::get(Key key, std::span<std::byte> into) {
  if (!Slot::takes_key(key)) co_return tl::unexpected(Error::not_found);
  const Slot wanted = Slot::of(key);
  const Lease held = co_await lease();
  const std::uint32_t known = level_;
  for (std::uint32_t level = known;; ++level) {
    const std::optional<Search> result =
        co_await search(held.lane(), geometry_.table(level), wanted);
    if (!result) co_return tl::unexpected(Error::disconnected);
    // What a sealed bucket does not hold is in the next table, if anywhere.
    if (!result->found && result->sealed) continue;
    if (level > known) co_await look_at_state(held.lane());
    if (!result->found) co_return tl::unexpected(Error::not_found);
    const Value value = result->found->value_bytes();
    if (value.size() > into.size()) co_return tl::unexpected(Error::too_large);
    copy_bytes(into.first(value.size()), value);
    co_return Bytes{value.size()};
  }
}

Task<std::optional<Search>> PFarmSession::search(std::uint32_t lane, Table table, Slot key) {
  std::optional<Search> result =
      co_await search_buckets(lane, table.bucket_offset(table.home(key)), kNeighborhoodSize, key);
  while (result && !result->found) {
    const auto block = table.block(result->link);
    if (!block) break;
    const bool sealed = result->sealed;
    result = co_await search_buckets(lane, table.bucket_offset(*block), kBucketSize, key);
    if (result) result->sealed |= sealed;
  }
  co_return result;
}

Task<std::optional<Search>> PFarmSession::search_buckets(std::uint32_t lane, Bytes offset,
                                                         Bytes size, Slot key) {
  for (;;) {
    if (!co_await read(lane, 0, offset, size)) co_return std::nullopt;
    const auto bytes = read_bytes(lane, 0, size);
    const Search result =
        size == kNeighborhoodSize ? search_neighborhood(bytes, key) : search_block(bytes, key);
    if (!result.torn) co_return result;
    ++counts_.torn_reads;
    ++counts_.retries;
  }
}

// Only when all items have been moved may the old table be forgotten: until then, one that is not
// in the next table may still be in the old one.
Task<> PFarmSession::look_at_state(std::uint32_t lane) {
  if (!co_await read(lane, 0, kStateOffset, kWord)) co_return;
  std::uint64_t word = 0;
  std::memcpy(&word, read_bytes(lane, 0, kWord).data(), kWord);
  level_ = std::max(level_, State::from(word).level);
}

}  // namespace perdura::systems::pfarm

namespace perdura::systems {

namespace {

std::unique_ptr<KvPartition> open(Thread& thread, std::string name, const KvConfig& config) {
  return std::make_unique<bucket_hash::Partition>(
      thread, std::make_shared<pfarm::PFarmServer>(thread.node, name, config,
                                                   pfarm::Parameters::of(config)));
}

}  // namespace

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
    .ordered = false,
    .shares_partition = true,
    .open = open,
    .connect = pfarm::PFarmSession::connect,
};

}  // namespace perdura::systems
