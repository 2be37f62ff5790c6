// Erda's log cleaner (Liu et al., section 4.4, figure 9): what happens between the moment from
// which no client accesses a head one-sidedly and the moment from which they may again. Runs on a
// thread of its own, object by object, and holds the store's lock for one object at a time, so that
// the server goes on serving.
#pragma once

#include <cstdint>

#include "platform/runtime/task.h"
#include "systems/erda/store.h"

namespace perdura::systems::erda {

class Cleaner {
 public:
  explicit Cleaner(Store& store) : store_(store), scratch_(store.make_scratch()) {}

  // Several heads may be cleaned at once. Should space not suffice after all, the head is left as
  // it was.
  Task<> clean(std::uint8_t head);

 private:
  Task<bool> merge(std::uint8_t head);
  Task<bool> replicate(std::uint8_t head);
  Task<> switch_tags(std::uint8_t head);

  Store& store_;
  Scratch scratch_;
};

}  // namespace perdura::systems::erda
