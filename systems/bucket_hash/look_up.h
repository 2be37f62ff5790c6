// A client's lookup of a key in an index whose table is resized into a next one: searches the
// newest known table, and later ones as long as the part that it reads is sealed.
#pragma once

#include <algorithm>
#include <cstdint>

#include "systems/bucket_hash/client.h"

namespace perdura::systems::bucket_hash {

// `known` is the level of the newest table that is known to hold all items, and may be increased.
// `search(reads, level, key)` searches one table, and returns nullopt if the connection broke.
// `is_sealed(result)` returns true if a missing item can only be in the next table.
template <class State, class Search>
Task<std::optional<LookedUp>> look_up(Reads reads, Slot key, std::uint32_t& known, Search search) {
  const std::uint32_t first = known;
  for (std::uint32_t level = first;; ++level) {
    const auto result = co_await search(reads, level, key);
    if (!result) co_return std::nullopt;
    if (!result->found && is_sealed(*result)) continue;
    if (level > first) {
      const auto state = co_await reads.read_state();
      if (state) known = std::max(known, State::from(*state).level);
    }
    co_return LookedUp{result->found};
  }
}

}  // namespace perdura::systems::bucket_hash
