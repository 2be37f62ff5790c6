#include "explore/triggers.h"

namespace perdura::explore {

void Triggers::begin() {
  counts_.clear();
  awaited_.clear();
  changed_at_ = platform_.engine().now();
}

void Triggers::at(const Trigger& trigger, std::function<void()> then) {
  if (trigger.number > 0) return awaited_.push_back({trigger, std::move(then)});
  platform_.at(platform_.engine().now() + trigger.delay, std::move(then));
}

void Triggers::count(Counted event, std::uint64_t number, Time now) {
  const std::uint64_t before = counts_[event];
  const std::uint64_t after = counts_[event] += number;
  for (const auto& [trigger, then] : awaited_) {
    if (trigger.counted != event || trigger.number <= before || trigger.number > after) continue;
    platform_.at(now + trigger.delay, then);
  }
}

std::uint64_t Triggers::counted(Counted event) const {
  const auto found = counts_.find(event);
  return found == counts_.end() ? 0 : found->second;
}

}  // namespace perdura::explore
