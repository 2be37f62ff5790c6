// The device operations that a system requires on its nodes, and the check before it starts.
#pragma once

#include <string>
#include <string_view>

#include "platform/fabric/types.h"

namespace perdura::fabric {

// Operations without which a system does not work. FLUSH for global visibility is not among them,
// since READ emulates it.
struct DeviceNeeds {
  bool write_with_immediate = false;
  bool atomics = false;  // compare_and_swap and fetch_and_add
  bool extents = false;  // Endpoint::register_extents
  bool appends = false;  // Endpoint::allow_appends
  bool commits = false;  // QueuePair::commit
  bool flush_persistence = false;
  bool atomic_write = false;
};

// The union of both.
constexpr DeviceNeeds operator|(const DeviceNeeds& a, const DeviceNeeds& b) {
  return {.write_with_immediate = a.write_with_immediate || b.write_with_immediate,
          .atomics = a.atomics || b.atomics,
          .extents = a.extents || b.extents,
          .appends = a.appends || b.appends,
          .commits = a.commits || b.commits,
          .flush_persistence = a.flush_persistence || b.flush_persistence,
          .atomic_write = a.atomic_write || b.atomic_write};
}

// Names the operations that are needed but that the device lacks: "WRITE_WITH_IMM and atomics".
// Empty if it has them all.
std::string missing(const DeviceNeeds& needs, const Capabilities& device);

// Throws UsageError if the device lacks what `user` needs.
void check_needs(const DeviceNeeds& needs, const Capabilities& device, std::string_view user);

}  // namespace perdura::fabric
