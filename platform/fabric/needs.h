// Checks, before a system starts, that the device supports the operations that it needs.
#pragma once

#include <fmt/core.h>

#include <string_view>

#include "platform/base/error.h"
#include "platform/fabric/types.h"

namespace perdura::fabric {

// Throws UsageError if the device has no WRITE_WITH_IMM, which `user` needs.
inline void need_write_with_immediate(const Capabilities& device, std::string_view user) {
  if (device.write_with_immediate) return;
  throw UsageError(fmt::format(
      "{} needs WRITE_WITH_IMM, which this device does not have (iWARP has none); choose "
      "an InfiniBand or RoCE device, or use --platform shm",
      user));
}

}  // namespace perdura::fabric
