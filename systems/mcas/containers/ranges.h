// A set of bytes, as ranges that do not touch each other.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>

#include "systems/mcas/storage/memory.h"

namespace perdura::systems::mcas::containers {

class Ranges {
 public:
  bool empty() const { return ends_.empty(); }
  void clear() { ends_.clear(); }

  void add(ByteRange range) {
    if (range.length == 0) return;
    Bytes begin = range.offset;
    Bytes end = range.end();
    auto next = ends_.upper_bound(begin);
    if (next != ends_.begin() && std::prev(next)->second >= begin) --next;
    while (next != ends_.end() && next->first <= end) {
      begin = std::min(begin, next->first);
      end = std::max(end, next->second);
      next = ends_.erase(next);
    }
    ends_.emplace(begin, end);
  }
  // Returns true if the set contains all bytes of the range.
  bool contains(ByteRange range) const {
    const auto next = ends_.upper_bound(range.offset);
    return next != ends_.begin() && std::prev(next)->second >= range.end();
  }
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [begin, end] : ends_) visit(ByteRange{begin, end - begin});
  }

 private:
  std::map<Bytes, Bytes> ends_;  // the end of each range, by its beginning
};

}  // namespace perdura::systems::mcas::containers
