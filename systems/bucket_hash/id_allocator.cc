#include "systems/bucket_hash/id_allocator.h"

#include <mutex>

namespace perdura::systems::bucket_hash {

std::optional<std::uint64_t> IdAllocator::take() {
  const std::scoped_lock lock(lock_);
  if (!given_back_.empty()) {
    const std::uint64_t number = given_back_.back();
    given_back_.pop_back();
    return number;
  }
  if (next_ == numbers_) return std::nullopt;
  return next_++;
}

void IdAllocator::recover(const std::vector<bool>& taken) {
  given_back_.clear();
  next_ = numbers_;
  while (next_ > 0 && !taken[next_ - 1]) --next_;
  for (std::uint64_t number = next_; number-- > 0;) {
    if (!taken[number]) given_back_.push_back(number);
  }
}

}  // namespace perdura::systems::bucket_hash
