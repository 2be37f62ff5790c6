// The rights of sessions on a data store's node to store into its pages by themselves (section 4.3.2:
// "an internal client"). A session that has ended must not do so any more when its pages are given to
// others: the store refuses its connections, but does not see its stores. It may be slow, or stopped, in
// the middle of one; and its process may have been killed there.
//
// Each session has a slot of four words in page 0, which only it and the store use. A right is an epoch
// that the session knows. The words are like those of a lock:
//
//   session   in_use = 1    right == 0? then it has none     stores into a page     in_use = 0
//   store     right = 0     in_use == 0, or the owner of the slot is dead? then it is fenced
//
// The system knows which process owns the slot, as a part of the region (Node::own_region()).
//
// The words coordinate processes and mean nothing after a failure of the node: the store that starts there
// takes all rights away. They are in persistent memory only since no other memory is shared by processes, so
// they are neither flushed nor counted.
#pragma once

#include <cstdint>
#include <memory>

#include "platform/platform.h"
#include "systems/orion/protocol/messages.h"

namespace perdura::systems::orion {

class LocalRights {
 public:
  // `pages`: of the store on this node; must outlive it.
  LocalRights(Node& node, pmem::Region& pages) : node_(node), pages_(pages) {}

  // --- by the store
  // From this epoch on sessions may have rights; 0: none.
  void open(std::uint64_t epoch);
  // Takes the rights of all sessions away, and gives none.
  void close();
  // Takes the rights of a session away.
  void revoke(const SessionId& session);
  // True if no session whose right was taken away is storing into a page.
  bool are_idle();

  // --- by a session
  class Right;

 private:
  // The offsets of the words.
  static constexpr Bytes kOpen = 2 * kCacheLine;
  static constexpr Bytes kFirstSlot = 3 * kCacheLine;
  static constexpr std::uint32_t kSlots = (kPage - kFirstSlot) / kCacheLine;
  enum class SlotWord : std::uint32_t { mount, port, right, in_use };
  static_assert(kStoreEpochOffset < kOpen);

  // All are sequentially consistent: of two that each store a word and then load the other one's, at least
  // one sees the other.
  void set(Bytes offset, std::uint64_t value);
  std::uint64_t get(Bytes offset) const;
  static Bytes offset_of(std::uint32_t slot, SlotWord word) {
    return kFirstSlot + slot * kCacheLine + static_cast<Bytes>(word) * kWord;
  }
  std::shared_ptr<void> own(std::uint32_t slot) const;

  Node& node_;
  pmem::Region& pages_;
};

// The right of one session. Belongs to its thread.
class LocalRights::Right {
 public:
  // `pages`: null if the node has no store.
  Right(Node& node, pmem::Region* pages);
  Right(const Right&) = delete;
  Right& operator=(const Right&) = delete;
  ~Right();

  // Asks for a right of the session, which knows that epoch. Must come before the session has any pages, or
  // before the store accepts a connection of it: the store takes away the right of a session that ends
  // later. Returns false if the store gives none.
  bool ask(const SessionId& session, std::uint64_t epoch);
  // Begins storing into a page, without suspending until end(). Returns false if there is no right.
  bool begin();
  void end();

 private:
  std::unique_ptr<LocalRights> rights_;
  std::uint32_t slot_ = 0;
  std::shared_ptr<void> owned_;
};

}  // namespace perdura::systems::orion
