// Recycles the nodes of a map whose entries come and go with every request. An erased entry leaves
// its node, with the memory of its key and its value, to a later one, so in a steady state nothing
// is allocated.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace perdura::systems::mcas {

// `Map`: a map whose keys are strings or vectors of bytes.
template <class Map>
class SpareNodes {
 public:
  using Node = typename Map::node_type;

  // Returns a node to be filled and inserted. It may still have the key and the value of an erased
  // entry.
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
  // Removes an entry and may keep its node.
  void erase(Map& map, typename Map::iterator at) {
    if (nodes_.size() < kMost && at->first.capacity() <= kLongestKey) {
      nodes_.push_back(map.extract(at));
    } else {
      map.erase(at);
    }
  }

 private:
  // Limits of what is kept: twice as many nodes as a session usually has requests in flight, and
  // keys that fit into one message of the plugins' queue.
  static constexpr std::size_t kMost = 64;
  static constexpr std::size_t kLongestKey = 1024;
  std::vector<Node> nodes_;
};

}  // namespace perdura::systems::mcas
