// Describes a host for manifest.json, as far as results depend on it: kernel, CPU and its governor,
// NUMA nodes, RDMA devices and their firmware, persistent memory.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace perdura::harness {

// A property of the host as a responder of remote updates, such as its persistence domain.
struct ResponderProperty {
  std::string name{};
  std::string value{};   // "unknown" if it could not be determined
  std::string reason{};  // where the value comes from, or why it is unknown
};

// Returns one JSON object, without line ends. Reads below `root`/proc and `root`/sys only, so that
// a test can substitute another machine; the number of usable cores is that of the calling process.
// Properties that the machine does not report are "unknown", or an empty list.
std::string describe_machine(const std::filesystem::path& root,
                             std::span<const ResponderProperty> responder);

// The part of such a description that must be equal for two measurements to be comparable, in one
// line.
std::string machine_name(const std::string& description);

// One description for each host, in the order given: ranks of one host are on the same machine.
std::vector<std::string> distinct_machines(std::vector<std::string> descriptions);

}  // namespace perdura::harness
