#include "explore/crash_point_list.h"

#include <algorithm>
#include <utility>

namespace perdura::explore {

CrashPointList::CrashPointList(Which which, const services::CrashScenario& scenario,
                               sim::SimPlatform& platform, std::function<bool()> begins,
                               std::uint32_t failures)
    : which_(which),
      scenario_(scenario),
      platform_(platform),
      begins_(std::move(begins)),
      failures_(failures) {
  platform_.list_crash_points();
}

void CrashPointList::look(std::uint32_t failures) {
  if (!from_ && failures == failures_ && begins_()) from_ = now();
  if (which_ == Which::at_every_event) return add_before(now());
  std::uint64_t steps = 0;
  for (std::uint32_t client = 0; client < scenario_.clients(); ++client) {
    steps += platform_.steps(scenario_.node_of_client(client));
  }
  if (std::exchange(steps_, steps) != steps) add_before(now());
}

void CrashPointList::end() {
  for (const Time change : platform_.crash_points()) add_before(std::min(change, now()));
  add_before(now());
}

void CrashPointList::add_before(Time when) {
  constexpr Picoseconds kInstant{1};
  if (from_ && when > *from_) points_.insert(when - kInstant);
}

}  // namespace perdura::explore
