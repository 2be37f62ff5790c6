// Exceptions for errors during setup. On the data path, errors are values (fabric::Status,
// kv::Error).
#pragma once

#include <stdexcept>
#include <string>

namespace perdura {

// The user asked for something impossible; the program exits with code 2. The message is one line
// that says what is wrong, where, and what to do.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The machine refused a correct request; the program exits with code 1.
struct PlatformError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace perdura
