#pragma once

#include <string>

namespace perdura::workload {

// Why a workload cannot be used: one line for a human, what is wrong, where, and what to do.
struct Error {
  std::string message;
};

}  // namespace perdura::workload
