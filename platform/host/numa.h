// Binds memory to one NUMA node. The memory of a benchmark node must be where its site file says;
// otherwise accesses to a remote socket are measured.
//
// The policy is MPOL_BIND, not MPOL_PREFERRED: if the NUMA node is full, an allocation fails (or
// the kernel ends the process) instead of silently coming from another node.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "platform/base/units.h"

namespace perdura {

// While this object lives, pages that the calling thread touches first are allocated on that NUMA
// node. Threads that it starts meanwhile inherit the binding for good. Without a NUMA node, it has
// no effect.
class MemoryBinding {
 public:
  // Throws UsageError if the machine has no such NUMA node or does not let this process bind
  // memory.
  explicit MemoryBinding(std::optional<unsigned> numa_node);
  ~MemoryBinding();
  MemoryBinding(const MemoryBinding&) = delete;
  MemoryBinding& operator=(const MemoryBinding&) = delete;

 private:
  bool bound_ = false;
  int mode_before_ = 0;
  std::array<unsigned long, 16> nodes_before_{};
};

// Binds the memory of a mapping, whichever thread or process touches it first. It has no effect on
// a DAX file system, where the file's location is that of its device. Throws UsageError.
void bind_memory(std::byte* base, Bytes size, std::optional<unsigned> numa_node);

// The NUMA node to which the calling thread's new memory, or the memory at an address, is bound;
// nullopt if it is not bound, or bound to several.
std::optional<unsigned> memory_binding();
std::optional<unsigned> memory_binding_at(const std::byte* address);

}  // namespace perdura
