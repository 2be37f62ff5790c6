// Nodes of a map whose entries come and go with every request: one that goes leaves its node, with
// the memory of its key and its value, to one that comes. So a steady state allocates nothing.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace perdura::systems::mcas {

// `Map`: of strings or vectors of bytes.
template <class Map>
class SpareNodes {
 public:
  using Node = typename Map::node_type;

  // A node to be filled and inserted. Its key and its value may be those of an entry that has gone.
  Node take() {
    if (nodes_.empty()) {
      Map one;
      one.emplace();
      return one.extract(one.begin());
    }
    Node node = std::move(nodes_.back());
    nodes_.pop_back();
    return node;
  }
  // Removes an entry.
  void erase(Map& map, typename Map::iterator at) {
    if (nodes_.size() < kMost && at->first.capacity() <= kLongestKey) {
      nodes_.push_back(map.extract(at));
    } else {
      map.erase(at);
    }
  }

 private:
  // Bounds of what is kept: as many as a session usually has requests under way, twice, and keys
  // that go into one message of the plugins' queue.
  static constexpr std::size_t kMost = 64;
  static constexpr std::size_t kLongestKey = 1024;
  std::vector<Node> nodes_;
};

}  // namespace perdura::systems::mcas
