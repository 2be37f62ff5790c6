#include "systems/pfarm/layout.h"

#include <bit>
#include <cstring>

#include "platform/runtime/work.h"

namespace perdura::systems::pfarm {

namespace {

// The seed of the hash that selects homes, so that it is independent of all other hashes of keys.
constexpr std::uint64_t kHomeSeed = 0x504641524D;

template <class T>
T object_at(std::span<const std::byte> bytes, Bytes offset) {
  T object;
  std::memcpy(&object, bytes.data() + offset, sizeof object);
  return object;
}

// Searches one bucket; its contents count only if all its words are from the same time.
struct Scan {
  Scan(std::span<const std::byte> bucket, const Slot& key)
      : header(object_at<Header>(bucket, kHeaderOffset)),
        link(object_at<Link>(bucket, kLinkOffset)) {
    std::uint64_t sum = check_term(header, link);
    for (Header bits = header & kOccupied; bits != 0; bits &= bits - 1) {
      const auto number = static_cast<SlotNumber>(std::countr_zero(bits));
      const auto slot = object_at<Slot>(bucket, slot_offset(number));
      sum ^= check_term(number, slot);
      if (!found && slot.same_key(key)) found = slot;
    }
    torn = sum != object_at<std::uint64_t>(bucket, kCheckOffset);
  }
  Header header;
  Link link;
  bool torn = false;
  std::optional<Slot> found;
};

}  // namespace

std::optional<SlotNumber> free_slot(Header header) {
  const Header free = kOccupied & ~header;
  if (free == 0) return std::nullopt;
  return static_cast<SlotNumber>(std::countr_zero(free));
}

std::uint64_t check_term(SlotNumber number, const Slot& slot) {
  return hash64(slot.bytes(), number + 1);
}

std::uint64_t hash_of(const Slot& key) { return hash64(key.key_bytes(), kHomeSeed); }

Table Geometry::table(std::uint32_t level) const {
  Table table{tables_offset(), homes, 0};
  for (std::uint32_t i = 0;; ++i) {
    table.blocks = table.homes * overflow_percent / 100;
    if (i == level) return table;
    table.offset += table.size();
    table.homes *= 2;
  }
}

Bytes Geometry::size() const {
  const Table last = table(resizes);
  return last.offset + last.size();
}

// If a bucket is not torn, its contents are those at some time during the READ, regardless of the
// other bucket. A key that is in neither is certainly absent only if it did not move from one to
// the other in between.
Search search_neighborhood(std::span<const std::byte> buckets, const Slot& key) {
  const Scan home(buckets.first(kBucketSize), key);
  if (!home.torn && home.found) return {.found = home.found};
  const Scan behind(buckets.subspan(kBucketSize, kBucketSize), key);
  if (!behind.torn && behind.found) return {.found = behind.found};
  if (home.torn || behind.torn || kJointBehind.of(home.header) != kJointBefore.of(behind.header)) {
    return {.torn = true};
  }
  return {.sealed = ((home.header | behind.header) & kSealed) != 0, .link = home.link};
}

Search search_block(std::span<const std::byte> block, const Slot& key) {
  const Scan scan(block, key);
  if (scan.torn) return {.torn = true};
  return {.found = scan.found, .sealed = (scan.header & kSealed) != 0, .link = scan.link};
}

}  // namespace perdura::systems::pfarm
