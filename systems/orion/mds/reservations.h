// Inodes that are reserved for the next change of one session, and what waits meanwhile.
//
// A commit names the tail that its entries follow. So a client that changes an inode back to back could
// keep the commits of others refused for ever: the others' operations take longer than its own. A
// client says how often an operation has been refused. From kMostRefusals on the MDS reserves the
// inode for it, and answers the refusal when its turn has come. Until that session's next commit has
// arrived, for a limited time, all other changes of the inode wait:
//
//   refused client ── commit, refused for the last time ──▶ waits for its turn ── answer ──▶ client
//                  ── READ of the log, commit ────────────▶ appended: nobody came in between
//
// Changes that wait, and reservations, have their turns in the order in which they came, so each of
// them gets one. While nothing is reserved, nothing waits and nothing is kept.
//
// All of this is in DRAM: after a restart, clients are refused again, and ask again.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <vector>

#include "platform/runtime/sync.h"
#include "systems/orion/mds/pages.h"

namespace perdura::systems::orion {

// Shared by the threads of the MDS.
class Reservations {
 public:
  // A place in the order; 0 is none.
  using Ticket = std::uint64_t;

  bool are_none() const { return count_.load(std::memory_order_acquire) == 0; }
  // True if nobody who changes this inode has a ticket.
  bool is_free(std::uint64_t inode);

  // Takes the next place for a change of these inodes. It must be left.
  Ticket enter(std::span<const std::uint64_t> inodes);
  // True if nobody comes before it who changes one of its inodes. Reservations whose time has passed
  // count no more.
  bool is_turn(Ticket ticket, Time now);
  // Does nothing if the ticket is 0.
  void leave(Ticket ticket);

  // Makes a place whose turn it is a reservation for the session, until then. It need not be left.
  void reserve(Ticket ticket, SessionNumber session, Time until);
  // Ends the reservation of the inode for this session: a change for which it was made has arrived, and
  // has the place until it leaves it. Returns 0 if there is none.
  Ticket take_up(SessionNumber session, std::uint64_t inode, Time now);
  // The session has ended.
  void end_session(SessionNumber session);

 private:
  struct Place {
    Ticket ticket = 0;
    std::vector<std::uint64_t> inodes;
    std::optional<SessionNumber> session{};  // for which it is reserved
    Time until{};
  };
  using Places = std::list<Place>;
  Places::iterator find(Ticket ticket);
  void drop_expired(Time now);
  template <class Condition>
  void drop(Condition condition);

  SpinLock lock_;
  Places places_;  // in the order of their tickets
  Ticket last_ = 0;
  std::atomic<std::size_t> count_{0};
};

}  // namespace perdura::systems::orion
