// The acknowledgments of data stores that commits wait for (section 4.3.3): a store that has forced
// pages into persistent memory says so, and the MDS appends the commit that refers to them when
// enough stores have. Belongs to a network thread.
//
// An acknowledgment may arrive before its commit. A client that never sends the commit leaves the
// count, which is forgotten before the page is given to somebody else (forget()).
#pragma once

#include <cstdint>
#include <map>

#include "platform/runtime/sync.h"

namespace perdura::systems::orion {

class Forces {
 public:
  // A store of the GPA's group has forced the pages from `gpa` on.
  void acknowledged(std::uint64_t gpa) {
    ++acknowledged_[gpa];
    changed_.wake_all();
  }
  // Waits until `count` stores have, and forgets them. Returns early if `is_over()`, which is asked
  // whenever something has changed.
  template <class IsOver>
  Task<bool> await(std::uint64_t gpa, std::uint32_t count, IsOver is_over) {
    while (acknowledged_[gpa] < count && !is_over()) co_await wait(changed_);
    const bool enough = acknowledged_[gpa] >= count;
    acknowledged_.erase(gpa);
    co_return enough;
  }
  // Nobody waits for these pages, which are about to be delegated.
  void forget(std::uint64_t first, std::uint64_t count) {
    acknowledged_.erase(acknowledged_.lower_bound(first), acknowledged_.lower_bound(first + count));
  }
  // Something has ended that commits may wait for.
  void wake() { changed_.wake_all(); }

 private:
  std::map<std::uint64_t, std::uint32_t> acknowledged_;
  WaitList changed_;
};

}  // namespace perdura::systems::orion
