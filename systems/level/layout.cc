#include "systems/level/layout.h"

#include <cstring>

namespace perdura::systems::level {

namespace {

template <class T>
T object_at(std::span<const std::byte> bytes, Bytes offset) {
  T object;
  std::memcpy(&object, bytes.data() + offset, sizeof object);
  return object;
}

}  // namespace

Level Geometry::level(std::uint32_t number) const {
  Level level{levels_offset(), buckets};
  for (std::uint32_t i = 0; i < number; ++i) level = {level.end(), 2 * level.buckets};
  return level;
}

Bytes Geometry::size() const { return level(levels() - 1).end(); }

Search search_bucket(std::span<const std::byte> bucket, const Slot& key, Tag tag) {
  const auto tokens = object_at<Tokens>(bucket, kTokensOffset);
  const Tokens matches = matching(tokens, tag);
  const KeyWords wanted = KeyWords::of(key);
  Search search{.sealed = (tokens & kSealed) != 0};
  std::uint64_t check = check_term(tokens);
  for (SlotNumber number = 0; number < kBucketSlots; ++number) {
    if (!is_occupied(tokens, number)) continue;
    const auto slot = object_at<SlotWords>(bucket, slot_offset(number));
    check ^= check_term(number, slot);
    if (is_occupied(matches, number) && KeyWords::of(slot).same(wanted)) {
      search.found = std::bit_cast<Slot>(slot);
    }
  }
  search.torn = check != object_at<std::uint64_t>(bucket, kCheckOffset);
  if (search.torn) search.found.reset();
  return search;
}

}  // namespace perdura::systems::level
