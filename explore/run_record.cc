#include "explore/run_record.h"

#include <fmt/format.h>

#include <algorithm>

namespace perdura::explore {

RunRecord::Events RunRecord::events() const {
  Events ordered = events_;
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return ordered;
}

std::string RunRecord::text() const {
  std::string text;
  for (const auto& [when, what] : events()) {
    text += fmt::format("  {:.3f} us: {}\n", to_microseconds(when.time_since_epoch()), what);
  }
  return text;
}

}  // namespace perdura::explore
