// Memory of one NUMA node: what a node of the benchmark works on must be where its site says, else
// a remote socket is measured.
//
// Bound, not preferred: if the NUMA node is full an allocation fails (or the kernel ends the
// process) instead of coming from elsewhere unnoticed.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "platform/base/units.h"

namespace perdura {

// While it lives, what the calling thread touches first is on that NUMA node. Threads that it
// starts meanwhile stay so. Without a NUMA node nothing changes.
class MemoryBinding {
 public:
  // Throws UsageError if the machine has no such NUMA node, or does not let this process choose.
  explicit MemoryBinding(std::optional<unsigned> numa_node);
  ~MemoryBinding();
  MemoryBinding(const MemoryBinding&) = delete;
  MemoryBinding& operator=(const MemoryBinding&) = delete;

 private:
  bool bound_ = false;
  int mode_before_ = 0;
  std::array<unsigned long, 16> nodes_before_{};
};

// The same of a mapping's memory, whichever thread or process touches it first. It changes nothing
// on a DAX file system, where a file is where its device is. Throws UsageError.
void bind_memory(std::byte* base, Bytes size, std::optional<unsigned> numa_node);

// The NUMA node that the calling thread's new memory, or the memory at an address, is bound to;
// nothing if to none, or to several.
std::optional<unsigned> memory_binding();
std::optional<unsigned> memory_binding_at(const std::byte* address);

}  // namespace perdura
