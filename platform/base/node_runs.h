#pragma once

#include "platform/base/error.h"

namespace perdura {

// Thrown by a platform if one of this process's nodes runs in the job already.
struct NodeRuns : UsageError {
  using UsageError::UsageError;
};

}  // namespace perdura
