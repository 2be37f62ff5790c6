// The characterization of a machine: what the probes found, as a profile
// (platform/sim/kernel/profile.h), so that `sim` can stand in for a cluster that was once measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/probe/probe.h"
#include "platform/fabric/fabric.h"
#include "platform/sim/kernel/profile.h"

namespace perdura::bench {

struct Characterized {
  std::string name{};  // of the profile
  std::string date{};  // when it was measured
  std::vector<Reading> readings{};
  std::uint32_t cores = 0;                             // of a node; 0: not known
  std::optional<fabric::Capabilities> capabilities{};  // of the devices, if they were asked
};

// The text of the profile's file. Each value says in a comment which probe it comes from; what
// could not be measured is as in `base` and says so. Parameters that only appear as a sum in what
// can be seen, such as the passes through the two devices and the link, are as in `base` but for
// one, which makes the sum right.
std::string characterize(const Characterized& found, const sim::Profile& base);

}  // namespace perdura::bench
