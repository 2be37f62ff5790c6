#include "systems/continuity/reader.h"

#include "systems/bucket_hash/look_up.h"

namespace perdura::systems::continuity {

Plan plan_of(const Geometry& geometry, std::uint32_t level) {
  return {geometry.pairs,
          std::uint64_t{geometry.added_percent} << 32 |
              std::uint64_t{geometry.resized_sbuckets} << 16 | geometry.sbuckets,
          std::uint64_t{geometry.resizes} << 32 | level};
}

IndexReader::IndexReader(const Plan& plan)
    : geometry_{plan[0], static_cast<std::uint16_t>(plan[1]),
                static_cast<std::uint32_t>(plan[1] >> 32),
                static_cast<std::uint32_t>(plan[2] >> 32),
                static_cast<std::uint16_t>(plan[1] >> 16)},
      level_(static_cast<std::uint32_t>(plan[2])) {}

Task<std::optional<LookedUp>> IndexReader::look_up(Reads reads, Slot key) {
  return bucket_hash::look_up<State>(reads, key, level_,
                                     [this](Reads& used, std::uint32_t level, const Slot& wanted) {
                                       return search(used, geometry_.table(level), wanted);
                                     });
}

Task<std::optional<Search>> IndexReader::search(Reads& reads, Table table, Slot key) {
  for (;;) {
    const std::optional<Search> result = co_await search_once(reads, table, key);
    if (!result || !result->torn) co_return result;
    reads.count_torn();
  }
}

Task<std::optional<Search>> IndexReader::search_once(Reads& reads, Table table, Slot key) {
  const Home home = table.home(key);
  const Bytes segment = table.segment_size();
  if (!co_await reads.read(table.segment_offset(home), segment)) co_return std::nullopt;
  const Search found = search_segment(reads.bytes(segment), table, home.odd, key);
  const auto group = group_of(found.indicator);
  if (found.torn || found.found || !group) co_return found;
  const Bytes size = table.group_size();
  if (!co_await reads.read(table.group_offset(*group), size)) co_return std::nullopt;
  co_return search_group(reads.bytes(size), table, found, key);
}

}  // namespace perdura::systems::continuity
