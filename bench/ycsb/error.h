#pragma once

#include <string>

namespace perdura::ycsb {

// The reason why a workload cannot be used, in one line for a human: what is wrong, where, and what
// to do.
struct Error {
  std::string message;
};

}  // namespace perdura::ycsb
