// Errors of setting things up. On the data path errors are values (fabric::Status, systems::Error).
#pragma once

#include <stdexcept>
#include <string>

namespace perdura {

// The user asked for something that cannot be: exit code 2. The message is one line that says what
// is wrong, where, and what to do.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The machine refused something that was asked for correctly: exit code 1.
struct PlatformError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace perdura
