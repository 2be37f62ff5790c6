// An action that a store takes on its own now and then, such as growing, cleaning, or repairing in
// recovery what a failure has interrupted. Explorations aim failures at these actions, so an
// exploration in which one of them never happened has not tested it.
#pragma once

#include <string_view>

namespace perdura::services {

struct Event {
  std::string_view name;     // in the plural, as in "3 resizes"
  bool in_recovery = false;  // when a store is opened after a failure, else while it serves
  // Needs more operations than the histories of an exploration have; generated runs meet it.
  bool in_long_histories = false;
};

}  // namespace perdura::services
