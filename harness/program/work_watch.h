#pragma once

#include <string>

namespace perdura::harness {

// Is told how far a command is that takes long and consists of parts. This one takes no notice;
// others show it. What a call throws ends the command.
class WorkWatch {
 public:
  virtual ~WorkWatch() = default;
  virtual void begin(const std::string& /*label*/) {}
  virtual void within(const std::string& /*label*/, double /*share*/) {}  // of the part, 0 to 1
  virtual void skip() {}   // ends the part; the command says itself what became of it
  virtual void close() {}  // there is no more to come
};

}  // namespace perdura::harness
