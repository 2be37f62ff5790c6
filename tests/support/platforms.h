// The platforms that tests of systems run on, by name. A new platform joins here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "platform/sim/kernel/profile.h"

namespace perdura::test {

std::vector<std::string> platform_names();

// The file of a profile of the source tree.
std::string profile_path(const std::string& name);

// The testbed of the Erda paper. Its file is read once: explorations make thousands of platforms.
const sim::Profile& erda_testbed();

// All nodes in this process; node 0 is the server.
std::unique_ptr<Platform> make_platform(const std::string& name, NodeId nodes);

// The same with memory so slow that a thread is nearly always in the middle of a change: flushing a
// line takes microseconds.
std::unique_ptr<Platform> make_platform_of_slow_memory(const std::string& name, NodeId nodes);

}  // namespace perdura::test
