// Records what happens in a generated run besides its operations, for reports, for the search
// (soak.h), and for explanations.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "platform/platform.h"
#include "services/system_state.h"

namespace perdura::explore {

class RunRecord {
 public:
  using Events = std::vector<std::pair<Time, std::string>>;

  void note(Time when, std::string what) { events_.emplace_back(when, std::move(what)); }
  // Begins to count an event, so that one that never happens is counted as 0.
  void expect(std::string_view event) { counts_[std::string(event)]; }
  void count(std::string_view event) { ++counts_[std::string(event)]; }
  void add(const services::SystemState& state) { states_.insert(state.digest()); }

  // Returns the events in the order of time.
  Events events() const;
  // One line each.
  std::string text() const;
  const std::map<std::string, std::uint64_t>& counts() const { return counts_; }
  // Digests of the states.
  const std::unordered_set<std::uint64_t>& states() const { return states_; }

 private:
  Events events_;
  std::map<std::string, std::uint64_t> counts_;
  std::unordered_set<std::uint64_t> states_;
};

}  // namespace perdura::explore
