#pragma once

#include <string>

namespace perdura::harness {

// Observes the progress of a long command that consists of parts. This class ignores it; derived
// classes show it. An exception that a call throws ends the command.
class WorkWatch {
 public:
  virtual ~WorkWatch() = default;
  virtual void begin(const std::string& /*label*/) {}
  // `share` of the part, 0 to 1.
  virtual void within(const std::string& /*label*/, double /*share*/) {}
  virtual void skip() {}   // ends the part; the command prints its outcome itself
  virtual void close() {}  // called after the last part
};

}  // namespace perdura::harness
