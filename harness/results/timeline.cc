#include "harness/results/timeline.h"

#include <algorithm>

namespace perdura::harness {
namespace {

void add_space(const Timeline::Space& space, const Timeline::Space& first,
               TimelineInterval& interval) {
  if (space.capacity > 0) {
    interval.free_percent =
        100.0 * static_cast<double>(space.free) / static_cast<double>(space.capacity);
  }
  interval.cleanings = space.cleanings - first.cleanings;
  interval.cleanings_now = space.cleanings_now;
}

}  // namespace

void Timeline::merge(const Timeline& other) {
  interval = std::max(interval, other.interval);
  begin = std::min(begin, other.begin);
  operations.insert(operations.end(), other.operations.begin(), other.operations.end());
  spaces.insert(spaces.end(), other.spaces.begin(), other.spaces.end());
}

std::vector<TimelineInterval> divide(const Timeline& timeline) {
  std::vector<TimelineInterval> intervals;
  if (!timeline.recorded() || timeline.operations.empty()) return intervals;
  const Picoseconds length = timeline.interval;
  const auto index_of = [&](Time time) {
    return static_cast<std::size_t>(std::max<std::int64_t>(0, (time - timeline.begin) / length));
  };
  const auto last =
      std::max_element(timeline.operations.begin(), timeline.operations.end(),
                       [](const auto& left, const auto& right) { return left.end < right.end; });
  intervals.resize(index_of(last->end) + 1);

  std::vector<double> sums(intervals.size());
  for (const Timeline::CompletedOperation& operation : timeline.operations) {
    const std::size_t index = index_of(operation.end);
    TimelineInterval& interval = intervals[index];
    ++interval.operations;
    sums[index] += static_cast<double>(operation.latency_ns);
    interval.max_ns = std::max(interval.max_ns.value_or(0), operation.latency_ns);
  }
  auto next_space = timeline.spaces.begin();
  for (std::size_t index = 0; index < intervals.size(); ++index) {
    TimelineInterval& interval = intervals[index];
    interval.start = timeline.interval * static_cast<std::int64_t>(index);
    if (interval.operations > 0) {
      interval.mean_ns = sums[index] / static_cast<double>(interval.operations);
    }
    while (next_space != timeline.spaces.end() && index_of(next_space->at) <= index) ++next_space;
    if (next_space == timeline.spaces.begin()) continue;
    add_space(*(next_space - 1), timeline.spaces.front(), interval);
  }
  return intervals;
}

}  // namespace perdura::harness
