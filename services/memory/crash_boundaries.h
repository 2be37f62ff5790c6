// How often a generated history of replicated memory has met what it is to meet, so that a run that
// never did is found out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "services/boundaries.h"
#include "services/memory/crash_plan.h"

namespace perdura::services {

struct MemoryBoundariesMet {
  BoundariesMet ranges{"ranges", kPageSize};
  std::uint64_t into_second_page = 0;  // sync points
  std::uint64_t with_more_copies = 0;  // the same, than the fewest
  std::uint64_t on_promoted = 0;       // the same
  std::uint64_t promoted_failed = 0;
  std::uint64_t promoted_unheard = 0;
  std::uint64_t given_up = 0;

  // A sync point of these cells.
  void note_sync(std::span<const MemoryCell> cells) {
    if (std::any_of(cells.begin(), cells.end(), goes_into_a_second_page)) ++into_second_page;
    for (const MemoryCell& cell : cells) ranges.note(cell.length);
  }
  // Those that can happen with so many copies.
  void add_to(std::map<std::string, std::uint64_t, std::less<>>& events,
              MemorySystem::Copies copies) const {
    ranges.add_to(events);
    events["sync points into a second page"] = into_second_page;
    if (copies.most > copies.least) {
      events["sync points with more copies than the fewest"] = with_more_copies;
    }
    if (copies.least == 0) return;
    events["sync points on a copy that was promoted"] = on_promoted;
    events["failures of a copy that was promoted"] = promoted_failed;
    events["promotions without having heard of the primary"] = promoted_unheard;
    events["copies given up"] = given_up;
  }
};

}  // namespace perdura::services
