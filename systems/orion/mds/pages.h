// The data pages that the MDS manages: which of them logs refer to, and the chunks that it has
// delegated to sessions (section 4.3.1). Both are in DRAM; recovery finds the former in the logs,
// and the latter end with the MDS.
//
//   a page is    free  --take()-->  in a delegated chunk  --claim()-->  used  --free()-->  free
//
// A page that is freed while its chunk is delegated can only be used by the session that has the
// chunk, which learns of it when it asks for a chunk and there is no other.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "platform/runtime/sync.h"
#include "systems/orion/protocol/layout.h"

namespace perdura::systems::orion {

using SessionNumber = std::uint32_t;

struct Chunk {
  std::uint64_t first = 0;  // GPA
  std::uint32_t count = 0;
  std::array<std::uint64_t, 8> free{};  // a bit for each page
};

// Shared by the threads of the MDS.
class Pages {
 public:
  Pages(std::uint32_t groups, std::uint64_t pages, std::uint64_t chunk_pages);

  bool are_pages(std::uint64_t first, std::uint64_t count) const;
  std::uint64_t mark_used(std::uint64_t first, std::uint64_t count);
  void free(std::uint64_t first, std::uint64_t count);
  bool is_used(std::uint64_t gpa) const;

  // Delegates a chunk that has free pages, of `group` if there is one. If no group has any, returns
  // number `own` of the chunks of this session that have free pages, which may have become free since
  // it took the chunk; nullopt if there are not so many.
  std::optional<Chunk> take(SessionNumber session, std::uint32_t group, std::uint64_t own);
  // Ends all delegations to the session.
  void give_back(SessionNumber session);
  // The session has given back this chunk.
  void give_back(SessionNumber session, std::uint64_t first);
  // Marks a free page of a chunk of this session as used. Returns false if it is none.
  bool claim(SessionNumber session, std::uint64_t gpa);
  void unclaim(std::uint64_t gpa) { free(gpa, 1); }

  std::uint64_t capacity() const { return groups_.size() * (pages_ - 1); }
  std::uint64_t free_count() const { return free_count_.load(std::memory_order_relaxed); }
  std::uint64_t delegations() const { return delegations_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kNobody = 0;
  struct Group {
    std::vector<std::uint64_t> used;     // a bit for each page
    std::vector<std::uint32_t> owners;   // by chunk: session + 1, or kNobody
    std::vector<std::uint32_t> free_of;  // by chunk: number of free pages
    std::uint64_t next = 0;              // the chunk at which the search goes on
  };

  std::uint64_t chunk_of(std::uint64_t page) const { return page / chunk_pages_; }
  std::uint64_t chunks() const { return (pages_ + chunk_pages_ - 1) / chunk_pages_; }
  std::uint64_t find(Group& group) const;
  Chunk describe(std::uint32_t group, std::uint64_t chunk) const;
  // Sets the page's bit and returns its value before.
  bool set(Group& group, std::uint64_t page, bool used);

  std::uint64_t pages_;
  std::uint64_t chunk_pages_;
  mutable SpinLock lock_;
  std::vector<Group> groups_;
  std::atomic<std::uint64_t> free_count_;
  std::atomic<std::uint64_t> delegations_{0};
};

}  // namespace perdura::systems::orion
