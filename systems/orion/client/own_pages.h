// The pages that the MDS has delegated to a session, from which it allocates by itself
// (section 4.3.1).
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "systems/nova/allocator.h"
#include "systems/orion/protocol/layout.h"
#include "systems/orion/protocol/messages.h"

namespace perdura::systems::orion {

class OwnPages {
 public:
  // Adds the free pages of a chunk, which may be one that it has. Returns false if it had all of them.
  bool add(const Reply& chunk);
  // Takes up to `most` adjacent pages; a count of 0 means that there are none.
  nova::Extent take(std::uint64_t most);
  // Gives back pages that were taken and not used.
  void give(const nova::Extent& extent);
  // The pages are somebody else's.
  void forget() {
    free_.clear();
    taken_.clear();
    chunks_.clear();
    used_up_.clear();
  }
  // Pages that were taken are in a log now.
  void settle(const nova::Extent& extent);

  // Counts a write under way for its lifetime: pages that it has taken are not yet in a log.
  class Use {
   public:
    explicit Use(OwnPages& pages) : pages_(pages) {
      if (pages_.uses_++ == 0) pages_.note_used_up();
    }
    ~Use() { --pages_.uses_; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    OwnPages& pages_;
  };
  // Removes the chunks of which nothing was left when a write last began while no other was under
  // way, so that all their pages are in logs; returns their first pages, for the MDS, which may
  // delegate what is freed of them.
  std::vector<std::uint64_t> used_up();

 private:
  struct OwnChunk {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };
  bool has(std::uint64_t page) const;

  std::vector<nova::Extent> free_;
  std::set<std::uint64_t> taken_;  // by writes under way
  std::vector<OwnChunk> chunks_;
  std::vector<std::uint64_t> used_up_;  // first pages
  std::uint32_t uses_ = 0;

  void note_used_up();
};

}  // namespace perdura::systems::orion
