// Turns the results of the probes on a machine into a profile (platform/sim/kernel/profile.h), so
// that `sim` can model a cluster that has been measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/probe/probe.h"
#include "platform/fabric/fabric.h"
#include "platform/sim/kernel/profile.h"

namespace perdura::bench {

struct Characterized {
  std::string name{};  // the profile's name
  std::string date{};  // when it was measured
  std::vector<Reading> readings{};
  std::uint32_t cores = 0;  // cores of a node; 0: not known
  // The capabilities of the devices, if they were asked.
  std::optional<fabric::Capabilities> capabilities{};
};

// Returns the text of the profile's file. A comment beside each value names the probe that it comes
// from; a value that could not be measured is that of `base`, and its comment says so. Some
// parameters can be measured only as a sum, such as the latencies of the two devices and the link.
// All but one of them are then those of `base`, and the remaining one is chosen so that the sum is
// right.
std::string characterize(const Characterized& found, const sim::Profile& base);

}  // namespace perdura::bench
