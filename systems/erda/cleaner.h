// Erda's log cleaner (Liu et al., section 4.4, figure 9). It works on a head only while no client
// accesses the head one-sidedly. It runs on its own thread, object by object, and holds the store's
// lock for one object at a time, so that the server continues to serve requests.
#pragma once

#include <cstdint>

#include "platform/runtime/task.h"
#include "systems/erda/store.h"

namespace perdura::systems::erda {

class Cleaner {
 public:
  explicit Cleaner(Store& store) : store_(store), scratch_(store.make_scratch()) {}

  // Several heads may be cleaned concurrently. If space runs out, the head is left as it was.
  Task<> clean(std::uint8_t head);

 private:
  Task<bool> merge(std::uint8_t head);
  Task<bool> replicate(std::uint8_t head);
  Task<> switch_tags(std::uint8_t head);

  Store& store_;
  Scratch scratch_;
};

}  // namespace perdura::systems::erda
