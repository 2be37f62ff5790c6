#include "systems/mcas/cluster/ring.h"

#include <algorithm>
#include <tuple>

#include "platform/runtime/work.h"

namespace perdura::systems::mcas::cluster {

namespace {

// Differs from the hash of a key in its shard's table, so that the keys of one shard are spread
// over all of its table.
constexpr std::uint64_t kSeed = 0x72696E67;

}  // namespace

void Ring::add(std::string_view member) {
  const auto at = std::lower_bound(members_.begin(), members_.end(), member);
  if (at != members_.end() && *at == member) return;
  members_.emplace(at, member);
  place_points();
}

void Ring::remove(std::string_view member) {
  if (std::erase(members_, member) > 0) place_points();
}

void Ring::place_points() {
  points_.clear();
  for (std::uint32_t member = 0; member < members_.size(); ++member) {
    // The point's number is the hashed data and not the seed: a seed would be XORed with a short
    // name, so that several members would have the same points in another order.
    const std::uint64_t of_member = hash64(std::as_bytes(std::span(members_[member])));
    for (std::uint32_t number = 0; number < kPoints; ++number) {
      points_.push_back({hash64(std::as_bytes(std::span(&number, 1)), of_member), member});
    }
  }
  // If two points are at the same place, which is unlikely, the member whose name sorts first has
  // it.
  std::sort(points_.begin(), points_.end(), [](const Point& a, const Point& b) {
    return std::tie(a.position, a.member) < std::tie(b.position, b.member);
  });
}

const std::string& Ring::owner(std::span<const std::byte> key) const {
  const std::uint64_t position = hash64(key, kSeed);
  const auto behind =
      std::lower_bound(points_.begin(), points_.end(), position,
                       [](const Point& point, std::uint64_t at) { return point.position < at; });
  return members_[(behind == points_.end() ? points_.front() : *behind).member];
}

}  // namespace perdura::systems::mcas::cluster
