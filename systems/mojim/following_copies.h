// Where sync points are passed on from one copy to others (M-syncsec, E-chain): what this node
// knows about each of the copies that follow it.
//
// A following copy that lacks sync points which no log has anymore is given the whole region.
// Meanwhile nothing is passed on to it: sync points up to the id that the region holds are skipped,
// and later ones are passed on when it has the region.
//
// All member functions may be called by any thread of the node.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "platform/runtime/sync.h"
#include "systems/mojim/copy_state.h"

namespace perdura::systems::mojim {

class FollowingCopies {
 public:
  static constexpr std::size_t kMost = 64;

  // The state of this node's own copy must outlive this.
  explicit FollowingCopies(const CopyState& state) : state_(state) {}

  // Gives up a following copy that does not answer, for all logs: it could never apply what it gets
  // by one log while another log does not pass on what comes before.
  void note_lost(std::size_t copy) { copies_[copy].lost = true; }
  const std::atomic<bool>& lost(std::size_t copy) const { return copies_[copy].lost; }
  bool is_lost(std::size_t copy) const {
    return copies_[copy].lost.load(std::memory_order_relaxed);
  }

  // Notes that sync points up to this id are not passed on, since the following copies will be
  // given the whole region instead: that of this copy once it is complete. skipped() is the
  // greatest such id.
  void skip(std::uint64_t id);
  std::uint64_t skipped() const { return skipped_.load(std::memory_order_relaxed); }

  // --- giving the region -------------------------------------------------------------------------

  // Claims the transfer of the region to following copy `copy`; false if another thread has claimed
  // it. From now until given_from() starts the transfer, nothing is passed on to that copy: waiting
  // sync points could fill the logs, and one that must be applied first might find no slot.
  bool begin_giving(std::size_t copy, std::uint64_t term);
  // True from begin_giving() to end_giving(). A transfer that has started counts only for its own
  // term and earlier ones: in a later term another region is needed.
  bool is_giving_for(std::size_t copy, std::uint64_t term) const;
  // Skips a sync point that the region being given holds, or will hold. False: it has to be passed
  // on.
  bool skip_until_given(std::size_t copy, std::uint64_t id);
  // Starts the transfer. Returns the id up to which the region holds everything, which is at least
  // `least`; nothing if not enough has been applied here yet.
  std::optional<std::uint64_t> given_from(std::size_t copy, std::uint64_t least);
  // Notes that the copy knows that it is incomplete until it has been given the region up to this
  // id.
  void note_given(std::size_t copy, std::uint64_t from) { copies_[copy].given_until = from; }
  std::uint64_t given_until(std::size_t copy) const { return copies_[copy].given_until; }
  void end_giving(std::size_t copy);

  // True if a following copy has been told that it is incomplete, as this one is. `since` is
  // CopyState::times_incomplete() when it was told: this does not count anymore once this copy has
  // been complete in between.
  bool awaits_region(std::size_t copy) const {
    return copies_[copy].awaits_since == state_.times_incomplete();
  }
  void note_awaits_region(std::size_t copy, std::uint64_t since) {
    copies_[copy].awaits_since = since;
  }

 private:
  enum class Giving : std::uint8_t { none, awaited, begun };
  struct Copy {
    std::atomic<bool> lost{false};
    std::atomic<std::uint64_t> given_until{0};
    std::atomic<std::uint64_t> awaits_since{0};
    // Guarded by lock_.
    Giving giving = Giving::none;
    std::uint64_t giving_from = 0;
    std::uint64_t giving_term = 0;
  };

  const CopyState& state_;
  mutable SpinLock lock_;
  std::array<Copy, kMost> copies_{};
  std::atomic<std::uint64_t> skipped_{0};
};

}  // namespace perdura::systems::mojim
