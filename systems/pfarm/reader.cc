#include "systems/pfarm/reader.h"

#include <algorithm>

namespace perdura::systems::pfarm {

Plan plan_of(const Geometry& geometry, std::uint32_t level) {
  return {geometry.homes, std::uint64_t{geometry.logs} << 32 | geometry.overflow_percent,
          std::uint64_t{geometry.resizes} << 32 | level};
}

Reader::Reader(const Plan& plan)
    : geometry_{plan[0], static_cast<std::uint32_t>(plan[1]),
                static_cast<std::uint32_t>(plan[2] >> 32),
                static_cast<std::uint32_t>(plan[1] >> 32)},
      level_(static_cast<std::uint32_t>(plan[2])) {}

Task<std::optional<LookedUp>> Reader::look_up(Reads reads, Slot key) {
  const std::uint32_t known = level_;
  for (std::uint32_t level = known;; ++level) {
    const std::optional<Search> result = co_await search(reads, geometry_.table(level), key);
    if (!result) co_return std::nullopt;
    // If the key is missing from a sealed bucket, it can only be in the next table.
    if (!result->found && result->sealed) continue;
    if (level > known) {
      const auto state = co_await reads.read_state();
      if (state) level_ = std::max(level_, State::from(*state).level);
    }
    co_return LookedUp{result->found};
  }
}

Task<std::optional<Search>> Reader::search(Reads& reads, Table table, Slot key) {
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
