// The measured interval of a point over time: the latency of operations and the space of the store,
// recorded if the experiment has [timeline].
//
// Every operation is kept, 16 bytes each, so that shares of several processes can be merged without
// loss and divided into intervals afterwards, when it is known when the first operation began.
// Times are the platform's, which all its processes share.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "platform/base/units.h"

namespace perdura::harness {

struct Timeline {
  struct CompletedOperation {
    Time end;
    std::uint64_t latency_ns;
  };
  // How full the store was, over all partitions.
  struct Space {
    Time at;
    Bytes capacity;
    Bytes free;
    std::uint64_t cleanings;      // ended since the server started
    std::uint64_t cleanings_now;  // under way
  };

  // Length of the intervals to divide it into; 0: nothing is recorded.
  Nanoseconds interval{};
  Time begin = Time::max();                    // start of the first operation
  std::vector<CompletedOperation> operations;  // those without an error, in any order
  // Samples of the space, in the order of time; empty if the system does not report it.
  std::vector<Space> spaces;

  bool recorded() const { return interval > Nanoseconds{}; }
  // Adds another share of the same point. At most one share has spaces: the server's.
  void merge(const Timeline& other);
};

// The operations that ended within one interval, and the store as last sampled before the
// interval's end. Absent values were not measured.
struct TimelineInterval {
  Nanoseconds start{};  // since the first operation began
  std::uint64_t operations = 0;
  std::optional<double> mean_ns;
  std::optional<std::uint64_t> max_ns;
  std::optional<double> free_percent;
  std::optional<std::uint64_t> cleanings;  // ended since the first sample
  std::optional<std::uint64_t> cleanings_now;
};

// All intervals up to the last operation, without gaps.
std::vector<TimelineInterval> divide(const Timeline& timeline);

}  // namespace perdura::harness
