#include "services/memory/crash_order.h"

namespace perdura::services {

MemoryRole MemoryOrder::role_of(NodeId node) const {
  const std::size_t place = place_of(node);
  if (place == 0) return MemoryRole::primary;
  return place == 1 ? MemoryRole::mirror : MemoryRole::backup;
}

bool MemoryOrder::note_failure(const ServerFailure& failure, std::size_t last,
                               const std::function<bool(NodeId)>& may_be_promoted) {
  const bool of_primary = failure.alone.value_or(primary()) == primary();
  failures_.emplace_back(failure, of_primary);
  if (!of_primary) return false;
  const std::size_t place = decided_ < moves_.size() ? moves_[decided_++] : 0;
  // Only the mirror takes the place of a primary that fails alone: a copy that follows another one
  // may have to wait until that one is complete.
  const std::size_t furthest = failure.alone ? std::min<std::size_t>(last, 1) : last;
  const bool moves =
      place > 0 && place <= furthest && place < order_.size() && may_be_promoted(order_[place]);
  const auto taken = order_.begin() + static_cast<std::ptrdiff_t>(moves ? place : 0);
  has_moved_ = has_moved_ || moves;
  if (failure.alone) {
    left_out_.insert(left_out_.end(), order_.begin(), taken);
    missed_.insert(order_.begin(), taken);
    order_.erase(order_.begin(), taken);
    return true;
  }
  std::rotate(order_.begin(), taken, taken + 1);
  order_.insert(order_.end(), left_out_.begin(), left_out_.end());
  left_out_.clear();
  return true;
}

bool MemoryOrder::was_of_primary(const ServerFailure& failure) const {
  const auto found = std::find_if(failures_.begin(), failures_.end(), [&](const auto& known) {
    return known.first.when == failure.when && known.first.alone == failure.alone;
  });
  if (found != failures_.end()) return found->second;
  return failure.alone.value_or(primary()) == primary();
}

}  // namespace perdura::services
