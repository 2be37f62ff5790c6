#pragma once

#include "platform/base/error.h"

namespace perdura {

// Thrown by a platform if a node that this process is to be runs in the job already.
struct NodeRuns : UsageError {
  using UsageError::UsageError;
};

}  // namespace perdura
