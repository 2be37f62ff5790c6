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
  std::string value{};   // "unknown" if it is
  std::string reason{};  // where that comes from, or why it is not known
};

// JSON, one object, without line ends. Reads below `root`/proc and `root`/sys only, so that a test
// can give another machine; the number of cores that may be used is that of the calling process.
// What the machine does not say is "unknown", or an empty list.
std::string describe_machine(const std::filesystem::path& root,
                             std::span<const ResponderProperty> responder);

// The part of such a description that must be equal for two measurements to be comparable, in one
// line.
std::string machine_name(const std::string& description);

// One description for each host, in the order given: ranks of one host are on the same machine.
std::vector<std::string> distinct_machines(std::vector<std::string> descriptions);

}  // namespace perdura::harness
