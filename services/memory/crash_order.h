// The order of the nodes in a history of replicated memory with failures: first the primary, then
// the mirror, then the copies that follow. After a failure a copy may have taken the primary's
// place.
#pragma once

#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "services/crash.h"
#include "services/memory/memory.h"

namespace perdura::services {

class MemoryOrder {
 public:
  // `moves`: MemoryPlan::moves.
  MemoryOrder(std::vector<NodeId> nodes, std::vector<std::size_t> moves)
      : order_(std::move(nodes)), moves_(std::move(moves)) {}

  const std::vector<NodeId>& nodes() const { return order_; }
  NodeId primary() const { return order_.front(); }
  std::size_t place_of(NodeId node) const {
    return static_cast<std::size_t>(std::find(order_.begin(), order_.end(), node) - order_.begin());
  }
  // True if another node took this one's place while this one was away. When all nodes are started
  // again, this one is added at the end of the order.
  bool is_left_out(NodeId node) const { return place_of(node) == order_.size(); }
  MemoryRole role_of(NodeId node) const;
  // True if the node follows again, and has not been told yet that sync points went on without it.
  bool has_missed(NodeId node) const { return missed_.contains(node) && !is_left_out(node); }
  void end_missing(NodeId node) { missed_.erase(node); }
  // This node and those that follow it.
  std::vector<NodeId> from(NodeId node) const {
    return {order_.begin() + static_cast<std::ptrdiff_t>(place_of(node)), order_.end()};
  }

  // Decides which node is the primary after a failure. If the primary failed, the next of the moves
  // says at which place of the order the next primary is: that copy takes over if it is one of the
  // first `last` copies (the first one if the primary failed alone) and `may_be_promoted` returns
  // true for it. Returns true if the primary failed.
  bool note_failure(const ServerFailure& failure, std::size_t last,
                    const std::function<bool(NodeId)>& may_be_promoted);
  // True if a copy has taken the primary's place at some failure.
  bool has_moved() const { return has_moved_; }
  // True if it was the primary that failed, in a failure that was noted.
  bool was_of_primary(const ServerFailure& failure) const;

 private:
  std::vector<NodeId> order_;
  std::vector<NodeId> left_out_;
  std::set<NodeId> missed_;
  std::vector<std::size_t> moves_;
  std::size_t decided_ = 0;  // number of moves used
  bool has_moved_ = false;
  std::vector<std::pair<ServerFailure, bool>> failures_;  // true: of the primary
};

}  // namespace perdura::services
