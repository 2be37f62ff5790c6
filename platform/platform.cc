#include "platform/platform.h"

#include <fmt/format.h>

#include "platform/base/error.h"

namespace perdura {

NodeId machine_of(const Machines& machines, NodeId node) {
  if (node >= machines.size()) return node;
  const NodeId machine = machines[node];
  if (machine > node || machines[machine] != machine) {
    throw UsageError(
        fmt::format("node {} cannot be on machine {}: a machine is named by the first of its nodes",
                    node, machine));
  }
  return machine;
}

std::unique_ptr<pmem::Region> Node::create_region_at(MemoryPlace place, std::string_view name,
                                                     Bytes size, pmem::Medium medium) {
  if (place == MemoryPlace{}) return create_region(name, size, medium);
  throw UsageError(fmt::format(
      "region '{}': this platform cannot choose its memory so; sim chooses the NUMA node and the "
      "DIMM, verbs the size of DRAM's pages",
      name));
}

std::unique_ptr<fabric::Endpoint> Node::create_socket_endpoint(Thread& /*thread*/,
                                                               fabric::Port /*port*/) {
  throw UsageError("this platform has no connections over TCP");
}

}  // namespace perdura
