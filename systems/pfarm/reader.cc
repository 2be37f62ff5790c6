#include "systems/pfarm/reader.h"

#include "systems/bucket_hash/look_up.h"

namespace perdura::systems::pfarm {

Plan plan_of(const Geometry& geometry, std::uint32_t level) {
  return {geometry.homes, std::uint64_t{geometry.logs} << 32 | geometry.overflow_percent,
          std::uint64_t{geometry.resizes} << 32 | level};
}

IndexReader::IndexReader(const Plan& plan)
    : geometry_{plan[0], static_cast<std::uint32_t>(plan[1]),
                static_cast<std::uint32_t>(plan[2] >> 32),
                static_cast<std::uint32_t>(plan[1] >> 32)},
      level_(static_cast<std::uint32_t>(plan[2])) {}

Task<std::optional<LookedUp>> IndexReader::look_up(Reads reads, Slot key) {
  return bucket_hash::look_up<State>(reads, key, level_,
                                     [this](Reads& used, std::uint32_t level, const Slot& wanted) {
                                       return search(used, geometry_.table(level), wanted);
                                     });
}

Task<std::optional<Search>> IndexReader::search(Reads& reads, Table table, Slot key) {
  std::optional<Search> result =
      co_await reads.read_whole(table.bucket_offset(table.home(key)), kNeighborhoodSize,
                                [&key](auto bytes) { return search_neighborhood(bytes, key); });
  while (result && !result->found) {
    const auto block = table.block(result->link);
    if (!block) break;
    const bool sealed = result->sealed;
    result = co_await reads.read_whole(table.bucket_offset(*block), kBucketSize,
                                       [&key](auto bytes) { return search_block(bytes, key); });
    if (result) result->sealed |= sealed;
  }
  co_return result;
}

}  // namespace perdura::systems::pfarm
