// A client's thread whose fabric operations are all delayed by the same time.
#pragma once

#include <optional>

#include "platform/faults/faulty_thread.h"

namespace perdura::services {

class LateThread {
 public:
  // `inner` must outlive this. `late`: 0 delays nothing.
  LateThread(Thread& inner, Picoseconds late) : inner_(inner) {
    if (late > Picoseconds{}) delayed_.emplace(inner, faults::FaultPlan{.slow = {late, late}});
  }

  Thread& thread() { return delayed_ ? delayed_->thread() : inner_; }

 private:
  Thread& inner_;
  std::optional<faults::FaultyThread> delayed_;
};

}  // namespace perdura::services
