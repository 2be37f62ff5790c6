#include "harness/results/timeline.h"

#include <algorithm>

#include "platform/base/error.h"

namespace perdura::harness {
namespace {

constexpr std::size_t kHeaderWords = 4;
constexpr std::size_t kWordsOfOperation = 2;
constexpr std::size_t kSpaceWords = 5;

std::uint64_t word(Time time) {
  return static_cast<std::uint64_t>(time.time_since_epoch().count());
}

Time time_of(std::uint64_t word) { return Time(Picoseconds(static_cast<std::int64_t>(word))); }

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

std::vector<std::uint64_t> Timeline::serialize() const {
  std::vector<std::uint64_t> words{static_cast<std::uint64_t>(interval.count()), word(begin),
                                   operations.size(), spaces.size()};
  words.reserve(kHeaderWords + operations.size() * kWordsOfOperation + spaces.size() * kSpaceWords);
  for (const Operation& operation : operations) {
    words.insert(words.end(), {word(operation.end), operation.latency_ns});
  }
  for (const Space& space : spaces) {
    words.insert(words.end(), {word(space.at), space.capacity, space.free, space.cleanings,
                               space.cleanings_now});
  }
  return words;
}

Timeline Timeline::deserialize(std::span<const std::uint64_t> words) {
  const auto damaged = [] { return PlatformError("a rank sent a timeline that is damaged"); };
  if (words.size() < kHeaderWords) throw damaged();
  Timeline timeline;
  timeline.interval = Nanoseconds(static_cast<std::int64_t>(words[0]));
  timeline.begin = time_of(words[1]);
  const std::uint64_t operations = words[2];
  const std::uint64_t spaces = words[3];
  words = words.subspan(kHeaderWords);
  if (operations > words.size() || spaces > words.size() ||
      words.size() != operations * kWordsOfOperation + spaces * kSpaceWords) {
    throw damaged();
  }
  timeline.operations.reserve(operations);
  for (; timeline.operations.size() < operations; words = words.subspan(kWordsOfOperation)) {
    timeline.operations.push_back({time_of(words[0]), words[1]});
  }
  timeline.spaces.reserve(spaces);
  for (; timeline.spaces.size() < spaces; words = words.subspan(kSpaceWords)) {
    timeline.spaces.push_back({time_of(words[0]), words[1], words[2], words[3], words[4]});
  }
  return timeline;
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
  for (const Timeline::Operation& operation : timeline.operations) {
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
