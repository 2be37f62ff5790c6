// Consistent hashing over shards, by which a client divides keys among them (MCAS, section 3): each
// member has many points on a ring of hashes, and a key belongs to the member of the first point at
// or after the key's own hash. When a member joins, only the keys that it gets move; when it
// leaves, only its own keys move.
//
// All clients that know the same members agree, in whatever order they learned of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace perdura::systems::mcas::cluster {

class Ring {
 public:
  // A member's share is the sum of this many gaps between points. With n members of p points each
  // it is 1/n on average, and its standard deviation is below 1/(n * sqrt(p)): for p = 256, below
  // 6.3 % of the average.
  static constexpr std::uint32_t kPoints = 256;

  // Do nothing if the member is present (add) or absent (remove) already.
  void add(std::string_view member);
  void remove(std::string_view member);

  // Sorted by name.
  const std::vector<std::string>& members() const { return members_; }
  bool empty() const { return members_.empty(); }
  // The member to which the key belongs. The ring must not be empty.
  const std::string& owner(std::span<const std::byte> key) const;

 private:
  struct Point {
    std::uint64_t position;
    std::uint32_t member;  // index in members_
  };
  void place_points();

  std::vector<std::string> members_;
  std::vector<Point> points_;  // sorted by their positions on the ring
};

}  // namespace perdura::systems::mcas::cluster
