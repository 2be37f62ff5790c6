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
  struct Operation {
    Time end;
    std::uint64_t latency_ns;
  };
  // How full the store was, all its partitions together.
  struct Space {
    Time at;
    Bytes capacity;
    Bytes free;
    std::uint64_t cleanings;      // that have ended since the server started
    std::uint64_t cleanings_now;  // under way
  };

  Nanoseconds interval{};             // to divide it into; 0: nothing is recorded
  Time begin = Time::max();           // of the first operation
  std::vector<Operation> operations;  // in any order; those that did not end in an error
  std::vector<Space> spaces;          // in the order of time; empty if the system does not say

  bool recorded() const { return interval > Nanoseconds{}; }
  // Adds another share of the same point. At most one share has spaces: the server's.
  void merge(const Timeline& other);
};

// The operations that ended within one interval, and the store as it was last sampled before the
// interval's end. What is absent was not measured.
struct TimelineInterval {
  Nanoseconds start{};  // since the first operation began
  std::uint64_t operations = 0;
  std::optional<double> mean_ns;
  std::optional<std::uint64_t> max_ns;
  std::optional<double> free_percent;
  std::optional<std::uint64_t> cleanings;  // ended since the first sample
  std::optional<std::uint64_t> cleanings_now;
};

// All intervals up to the last operation, without a gap.
std::vector<TimelineInterval> divide(const Timeline& timeline);

}  // namespace perdura::harness
