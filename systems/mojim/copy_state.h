// The facts about a node's copy of the region that outlive a failure: up to which id sync points
// have been applied, whether the copy is complete, and which other copies a primary has given up.
// They are words in the region of the logs (layout.h); recovery reads them before all else.
//
// Reading may be done by any thread of the node. Functions that change the applied id or the
// completeness require that nobody else does so: DataArea calls them with its lock, and Primary
// with its own.
#pragma once

#include <atomic>
#include <cstdint>

#include "platform/pmem/region.h"
#include "systems/mojim/layout.h"

namespace perdura::systems::mojim {

class CopyState {
 public:
  // The region of the logs must outlive this.
  explicit CopyState(pmem::Region& logs);

  // --- progress ----------------------------------------------------------------------------------

  // The greatest id that has been applied, and its term.
  std::uint64_t applied() const { return applied_.load(std::memory_order_relaxed); }
  std::uint64_t term() const { return term_of(applied()); }
  // Notes that everything up to this id is applied to a data area on a disk. Recovery learns of it
  // from note_saved() only, since the disk may not have it yet.
  void set_applied(std::uint64_t id) { applied_ = id; }
  // Notes that the disk has what was applied up to this id.
  void note_saved(std::uint64_t id);
  // Notes that everything up to this id is applied. From now on recovery ignores requests up to it,
  // and their slots may be filled again.
  void store_applied(std::uint64_t id, bool durably);
  // The term that was begun last: later than term() if a failure has interrupted its beginning.
  std::uint64_t begun_term() const { return logs_region_.load(kBegunOffset); }
  void store_begun_term(std::uint64_t term);
  // True if the sync points of this term arrive in the background: nobody waits until they are
  // here.
  bool is_in_background() const { return in_background_; }
  void set_in_background(bool in_background);

  // --- completeness ------------------------------------------------------------------------------

  // True if the data area may hold something other than the outcome of sync points. This flag is
  // durable when set_incomplete() returns. A copy becomes complete when it has applied the last of
  // the requests by which a primary copies the region to it.
  bool is_incomplete() const { return incomplete_.load(std::memory_order_relaxed); }
  void set_incomplete(bool incomplete);
  // The copy becomes complete when everything up to this id, which is applied, is saved.
  void complete_when_saved(std::uint64_t id) { completes_with_ = id; }
  // True if this copy must be given the whole region. That is not necessary for an incomplete copy
  // that becomes complete once its disk has what is applied.
  bool needs_region() const { return is_incomplete() && completes_with_ == 0; }
  // Counts how often the copy became incomplete or began a term. Whatever it has told other copies
  // about its completeness holds as long as this number stays the same.
  std::uint64_t times_incomplete() const { return times_incomplete_; }
  void end_what_was_told() { ++times_incomplete_; }

  // --- primaries ---------------------------------------------------------------------------------

  // True on a primary that goes on without a copy: its region is complete, and what it acknowledges
  // is nowhere else, until the region is given to a copy. Durable when go_on_alone() returns.
  bool is_alone() const { return alone_.load(std::memory_order_relaxed); }
  void go_on_alone();
  // The copies that a primary has given up, a bit for each; durable when set_given_up() returns.
  std::uint64_t given_up() const { return logs_region_.load(kGivenUpOffset); }
  void set_given_up(std::uint64_t copies);
  // The node is a primary now: nothing is accepted from another one.
  void close() { closed_ = true; }
  bool is_closed() const { return closed_.load(std::memory_order_relaxed); }
  // The number of connections by which the logs receive. Over one of them requests may still arrive
  // when the node is closed, until its thread has ended it.
  void connection_begins() { ++connections_; }
  void connection_ends() { --connections_; }
  std::uint32_t connections() const { return connections_.load(std::memory_order_acquire); }

 private:
  void store_saved(std::uint64_t id, bool durably);
  void store_completeness(std::uint64_t completeness);
  void store_durably(Bytes offset, std::uint64_t value);

  pmem::Region& logs_region_;
  std::atomic<std::uint64_t> applied_{0};
  std::uint64_t saved_ = 0;     // id; guarded by the lock of DataArea
  bool in_background_ = false;  // guarded by the lock of DataArea
  std::atomic<bool> incomplete_{false};
  std::atomic<bool> alone_{false};
  std::atomic<bool> closed_{false};
  std::atomic<std::uint32_t> connections_{0};
  // The copy is complete once everything applied up to this id is saved; 0: it is not waiting for
  // that.
  std::atomic<std::uint64_t> completes_with_{0};
  std::atomic<std::uint64_t> times_incomplete_{1};
};

}  // namespace perdura::systems::mojim
