// What a store does of itself now and then, such as growing, cleaning, or repairing in recovery
// what a failure has interrupted. Failures are explored so that they hit it; so an exploration in
// which one of these never happened has tried nothing of it.
#pragma once

#include <string_view>

namespace perdura::services {

struct Event {
  std::string_view name;     // in the plural, as in "3 resizes"
  bool in_recovery = false;  // happens when a store is opened after a failure, else while it serves
  // Needs more operations than the histories of an exploration have: generated runs meet it.
  bool in_long_histories = false;
};

}  // namespace perdura::services
