#include "systems/orion/client/own_pages.h"

#include <algorithm>

#include "systems/nova/inode.h"

namespace perdura::systems::orion {

bool OwnPages::has(std::uint64_t page) const {
  return taken_.contains(page) ||
         std::any_of(free_.begin(), free_.end(), [page](const nova::Extent& extent) {
           return page >= extent.first && page - extent.first < extent.count;
         });
}

bool OwnPages::add(const Reply& chunk) {
  const bool is_known = std::any_of(chunks_.begin(), chunks_.end(),
                                    [&](const OwnChunk& own) { return own.first == chunk.value; });
  if (!is_known) chunks_.push_back({chunk.value, chunk.count});
  std::vector<nova::Extent> added;
  for (std::uint64_t i = 0; i < std::min(chunk.count, kMostChunkPages); ++i) {
    const std::uint64_t page = chunk.value + i;
    if ((chunk.free[i / 64] >> i % 64 & 1) == 0 || (is_known && has(page))) continue;
    nova::add_extent(added, page, 1);
  }
  // The first ones are taken first.
  free_.insert(free_.end(), added.rbegin(), added.rend());
  return !added.empty();
}

nova::Extent OwnPages::take(std::uint64_t most) {
  if (free_.empty()) return {};
  nova::Extent& last = free_.back();
  const nova::Extent taken{last.first, std::min(most, last.count)};
  last.first += taken.count;
  last.count -= taken.count;
  if (last.count == 0) free_.pop_back();
  for (std::uint64_t i = 0; i < taken.count; ++i) taken_.insert(taken.first + i);
  return taken;
}

void OwnPages::settle(const nova::Extent& extent) {
  taken_.erase(taken_.lower_bound(extent.first), taken_.lower_bound(extent.first + extent.count));
}

void OwnPages::give(const nova::Extent& extent) {
  settle(extent);
  if (!free_.empty() && extent.first + extent.count == free_.back().first) {
    free_.back().first = extent.first;
    free_.back().count += extent.count;
  } else {
    free_.push_back(extent);
  }
}

void OwnPages::note_used_up() {
  const auto is_used_up = [this](const OwnChunk& chunk) {
    return std::none_of(free_.begin(), free_.end(), [&](const nova::Extent& extent) {
      return extent.first < chunk.first + chunk.count && extent.first + extent.count > chunk.first;
    });
  };
  for (const OwnChunk& chunk : chunks_) {
    if (is_used_up(chunk)) used_up_.push_back(chunk.first);
  }
  std::erase_if(chunks_, is_used_up);
}

std::vector<std::uint64_t> OwnPages::used_up() { return std::exchange(used_up_, {}); }

}  // namespace perdura::systems::orion
