// All that may fail at a crash point of a fixed history, of a kind of failure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "explore/plan.h"
#include "services/crash.h"

namespace perdura::explore {

struct Failures {
  FailureKind kind = FailureKind::power;
  // How many servers lose power, or their processes, at once; every subset of that size is tried in
  // turn. 0: all servers fail. Clients and connections fail one at a time.
  NodeId servers = 0;

  bool are_of_all_power() const { return kind == FailureKind::power && servers == 0; }
};

// Those of which this is one.
Failures failures_like(const WhatFails& failing);

// All failures of this kind, to be tried one after the other.
std::vector<WhatFails> all_failures(const Failures& fails, const services::CrashScenario& scenario);

// The name of a history in which this fails.
std::string text_of(std::string_view history, const WhatFails& failing, NodeId servers);

// Throws UsageError if nothing like this can fail in the scenario, or if so many recoveries cannot
// be tried (ExploreOptions::most_recoveries).
void check_can_fail(std::string_view system, const Failures& fails, std::uint64_t recoveries,
                    const services::CrashScenario& scenario);

}  // namespace perdura::explore
