#include "systems/level/reader.h"

#include <algorithm>

namespace perdura::systems::level {

Plan plan_of(const Geometry& geometry, std::uint32_t bottom) {
  return {geometry.buckets, std::uint64_t{geometry.logs} << 32 | geometry.resizes, bottom};
}

IndexReader::IndexReader(const Plan& plan)
    : geometry_{plan[0], static_cast<std::uint32_t>(plan[1]),
                static_cast<std::uint32_t>(plan[1] >> 32)},
      bottom_(static_cast<std::uint32_t>(plan[2])) {}

Task<std::optional<LookedUp>> IndexReader::look_up(Reads reads, Slot key) {
  const Wanted wanted{key, Hashes::of(key)};
  const std::uint32_t bottom = bottom_;
  bool later = false;
  std::optional<Search> result = co_await search(reads, bottom + 1, wanted, later);
  if (result && !result->found) result = co_await search(reads, bottom, wanted, later);
  if (!result) co_return std::nullopt;
  if (later) {
    const auto state = co_await reads.read_state();
    if (state) bottom_ = std::max(bottom_, State::from(*state).bottom);
  }
  co_return LookedUp{result->found};
}

// An item moves only from its first bucket of a level to the second, and from either to the next
// level but one, and it is stored there before it is deleted here. So a search in this order cannot
// miss it.
Task<std::optional<Search>> IndexReader::search(Reads& reads, std::uint32_t level, Wanted wanted,
                                                bool& later) {
  for (;; level += 2) {
    const std::optional<Search> result = co_await search_level(reads, level, wanted);
    if (!result || result->found || !result->sealed) co_return result;
    later = true;
  }
}

Task<std::optional<Search>> IndexReader::search_level(Reads& reads, std::uint32_t level,
                                                      Wanted wanted) {
  const Level used = geometry_.level(level);
  const std::optional<Search> first =
      co_await search_bucket_at(reads, used.candidate_offset(wanted.hashes, Side::first), wanted);
  if (!first || first->found) co_return first;
  std::optional<Search> second =
      co_await search_bucket_at(reads, used.candidate_offset(wanted.hashes, Side::second), wanted);
  if (second) second->sealed |= first->sealed;
  co_return second;
}

Task<std::optional<Search>> IndexReader::search_bucket_at(Reads& reads, Bytes offset,
                                                          Wanted wanted) {
  co_return co_await reads.read_whole(offset, kBucketSize, [&wanted](auto bytes) {
    return search_bucket(bytes, wanted.key, wanted.hashes.tag());
  });
}

}  // namespace perdura::systems::level
