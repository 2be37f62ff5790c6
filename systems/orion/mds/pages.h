// The data pages that the MDS manages: which of them logs refer to, and the chunks that it has
// delegated to sessions (section 4.3.1). Both are in DRAM; recovery finds the former in the logs,
// and the latter end with the MDS.
//
//   a page is    free  --take()-->  in a delegated chunk  --claim()-->  used  --free()-->  free
//
// A page that is allocated to a file and was never written may be lent to a session, which is then the
// only one that may write to it in place (lend()): there may be no space for a new page. What a
// session has borrowed is freed, if a file has lost it meanwhile, when the loan ends.
// Pages are accepted in the current epoch only (members.h). While a store catches up, no page of its
// group that is freed may be used again: it may be fetching it (keep()).
//
// A page that is freed while its chunk is delegated can only be used by the session that has the
// chunk, which learns of it when it asks for a chunk and there is no other.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "platform/runtime/sync.h"
#include "systems/nova/allocator.h"
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
  // Ends all delegations and loans to the session.
  void give_back(SessionNumber session);
  // The session has given back this chunk.
  void give_back(SessionNumber session, std::uint64_t first);
  // Marks a free page of a chunk of this session as used.
  enum class Claimed : std::uint8_t { yes, no, other_epoch };
  Claimed claim(SessionNumber session, std::uint64_t gpa, std::optional<std::uint64_t> epoch);
  // The same for a page that the file has there already.
  Claimed claim_again(std::uint64_t gpa, std::optional<std::uint64_t> epoch) const;
  void unclaim(std::uint64_t gpa) { free(gpa, 1); }

  // Returns false if a page is lent to another session.
  bool lend(SessionNumber session, std::span<const std::uint64_t> pages);
  bool is_lent_to(SessionNumber session, std::uint64_t gpa) const;
  void end_loan(SessionNumber session, std::uint64_t gpa);
  // From now on pages that were written in this epoch are accepted; with nullopt, none.
  void accept(std::optional<std::uint64_t> epoch);
  std::optional<std::uint64_t> accepted() const;
  // Keeps used pages of this group from being used again, and of all others no longer. Does nothing if
  // the group was kept already.
  void keep(std::optional<std::uint32_t> group);
  // True if pages wait that were freed.
  bool has_kept() const;
  // The bits of the group's pages, one for each that is used.
  std::vector<std::uint64_t> used(std::uint32_t group) const;

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
  void free_one(std::uint64_t gpa);
  // Frees a page that was lent.
  void free_returned(std::uint64_t gpa);

  void free_now(std::uint64_t first, std::uint64_t count);

  std::uint64_t pages_;
  std::uint64_t chunk_pages_;
  mutable SpinLock lock_;
  std::vector<Group> groups_;
  struct Loan {
    SessionNumber session = 0;
    bool is_freed = false;  // no file has the page anymore
  };
  std::map<std::uint64_t, Loan> loans_;
  std::optional<std::uint64_t> accepted_;
  std::optional<std::uint32_t> kept_group_;
  std::vector<nova::Extent> kept_;  // that were freed meanwhile
  std::atomic<std::uint64_t> free_count_;
  std::atomic<std::uint64_t> delegations_{0};
};

}  // namespace perdura::systems::orion
