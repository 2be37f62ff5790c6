#include "explore/patience.h"

#include <algorithm>
#include <utility>

namespace perdura::explore {

namespace {

// In virtual time. The former is ten times as long as a client needs to notice that its server has
// gone, and as any operation that ends; the latter longer than a client tries to connect.
constexpr Picoseconds kOfOperation = std::chrono::milliseconds(10);
constexpr Picoseconds kLongest = std::chrono::seconds(2);

}  // namespace

void Patience::begin(sim::SimPlatform& platform, std::function<void()> give_up) {
  give_up_ = std::move(give_up);
  wait(platform, platform.engine().now() + kLongest);
}

void Patience::wait(sim::SimPlatform& platform, Time longest) {
  const Time next = std::min(longest, platform.engine().now() + kOfOperation);
  platform.at(next, [this, &platform, longest, before = progress_] {
    const bool stuck = progress_ == before && scenario_.waits_for_operation();
    if (!stuck && platform.engine().now() < longest) return wait(platform, longest);
    scenario_.note_problem("the system does not answer any more");
    give_up_();
  });
}

}  // namespace perdura::explore
