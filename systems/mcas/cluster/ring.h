// Consistent hashing over shards, by which a client divides keys among them (MCAS, section 3): each
// member has many points on a ring of hashes, and a key belongs to the member of the first point
// behind the key's own hash. When a member joins, the keys that it gets are the only ones that
// move; when it leaves, its own are.
//
// All clients that know the same members agree, whatever the order in which they learned of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace perdura::systems::mcas::cluster {

class Ring {
 public:
  // A member's share is the sum of as many gaps between points. Of n members with p points it is
  // 1/n on average, and its standard deviation is below 1/(n * sqrt(p)): with 256, below 6.3 % of
  // it.
  static constexpr std::uint32_t kPoints = 256;

  // Do nothing if it is, or is not, a member already.
  void add(std::string_view member);
  void remove(std::string_view member);

  // In the order of their names.
  const std::vector<std::string>& members() const { return members_; }
  bool empty() const { return members_.empty(); }
  // The member to which the key belongs. There must be one.
  const std::string& owner(std::span<const std::byte> key) const;

 private:
  struct Point {
    std::uint64_t place;
    std::uint32_t member;  // in members_
  };
  void place_points();

  std::vector<std::string> members_;
  std::vector<Point> points_;  // in their order on the ring
};

}  // namespace perdura::systems::mcas::cluster
