// The logs of a copy (section 3.2.2): rings of slots that the device fills with requests, one log
// for each connection. This class is told what has arrived. It knows which sync points are whole,
// in which order they are applied to the data area (data_area.h), and which slots may be filled
// again: those whose requests have been applied, saved by the disk that the data area may be on,
// and passed on to the copies that follow this one.
//
// Positions count the slots of a log without end; a position's slot is the remainder by the number
// of slots. All member functions may be called by any thread of the node.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "platform/pmem/region.h"
#include "platform/runtime/ring.h"
#include "platform/runtime/sync.h"
#include "systems/mojim/copy_state.h"
#include "systems/mojim/layout.h"

namespace perdura::systems::mojim {

// The place of a sync point's requests in a log.
struct SyncPoint {
  std::uint64_t id = 0;        // its first request's id
  std::uint64_t position = 0;  // its first request's position
  std::uint32_t count = 0;
  std::uint64_t last_id() const { return id + count - 1; }
  std::uint64_t end() const { return position + count; }
};

class ReceiveLogs {
 public:
  // Finds the sync points that had arrived and not been applied, in a region that is not new. With
  // `flushes`, requests are flushed before anything depends on them; as published, nothing is
  // flushed on a copy. Region and state must outlive this.
  ReceiveLogs(pmem::Region& region, CopyState& state, const Shape& shape, bool flushes);

  const Shape& shape() const { return shape_; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(logs_.size()); }

  // --- arrivals, on the thread that receives into the log ----------------------------------------

  // The position after the last request of whole sync points, where the next one is received.
  std::uint64_t next_position(std::uint32_t log) const;
  // Slots at positions below this one may be filled.
  std::uint64_t free_until(std::uint32_t log) const;
  // The id up to which the sender need not send anything more to this log.
  std::uint64_t last_id(std::uint32_t log) const;

  enum class Arrival : std::uint8_t { more, complete, invalid };
  // Tells that the slot at this position has been filled. `complete`: its sync point has arrived
  // whole. `invalid`: the request cannot come next here, or this node is a primary
  // (CopyState::close()).
  Arrival arrived(std::uint32_t log, std::uint64_t position);
  // After the end of a connection whose last arrivals nobody has reported: takes the whole sync
  // points that are found in the slots.
  void look_for_arrived(std::uint32_t log);
  // After the end of a connection: forgets a sync point of which only a part has been sent.
  void forget_part(std::uint32_t log);

  // --- passing on --------------------------------------------------------------------------------

  // From now on slots are kept until pass() says that the following copies have them, too.
  void keep_for_others() { kept_ = true; }
  // The first whole sync point of a log at this position or later.
  std::optional<SyncPoint> whole_from(std::uint32_t log, std::uint64_t position) const;
  // Everything in the log before this position has been passed on, or will not be.
  void pass(std::uint32_t log, std::uint64_t position);
  // Everything up to this id has been passed on, or will not be.
  std::uint64_t passed_id() const;
  // The number of requests, in all logs, that have not been passed on.
  std::uint64_t not_passed() const;

  // --- applying, by DataArea ---------------------------------------------------------------------

  // True if there are whole sync points that have not been applied.
  bool has_work() const { return ready_.load(std::memory_order_relaxed) > 0; }
  // True if there are some, and this many requests have arrived since the last checkpoint or a log
  // is half full of requests that have not been applied.
  bool is_checkpoint_due(std::uint64_t requests) const;
  struct InLog {
    std::uint32_t log = 0;
    SyncPoint sync;
  };
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};
  // Takes the whole sync point that follows id `last`, to apply it; with `over_gaps` that with the
  // least id, whatever is missing before it. Returns nothing if it is not there or ends after
  // `until_id`.
  std::optional<InLog> take_next(std::uint64_t last, bool over_gaps, std::uint64_t until_id);
  // All that follow id `last` without a gap; they are not taken.
  std::vector<InLog> whole_after(std::uint64_t last) const;
  RequestHeader header_at(std::uint32_t log, std::uint64_t position) const;
  // Reads the data of a request: as many bytes as its header says.
  void read_data(std::uint32_t log, std::uint64_t position, std::span<std::byte> into) const;
  // Notes the end of a checkpoint. `until`: for each log, the position after the last sync point
  // that was taken and is applied now; 0 if there was none.
  void note_applied(std::span<const std::uint64_t> until);
  // Drops the sync points up to this id that have not been applied, and parts of others.
  void forget_not_applied(std::uint64_t id);
  // True if everything that has arrived in this log is applied.
  bool is_applied(std::uint32_t log) const;

  // On a data area on a disk, slots are kept until note_saved() says that the disk has what was
  // applied: everything before the positions that applied_until() returned.
  void keep_until_saved(bool keep);
  std::vector<std::uint64_t> applied_until() const;
  void note_saved(std::span<const std::uint64_t> applied_until);
  // True if slots of this log wait for that.
  bool wants_save(std::uint32_t log) const;

  struct Counts {
    std::uint64_t laps = 0;       // wraparounds of logs
    std::uint64_t replayed = 0;   // sync points found by recovery
    std::uint64_t discarded = 0;  // parts of sync points that recovery found
  };
  Counts counts() const;

 private:
  struct Log {
    Ring<SyncPoint> whole;       // not yet applied, or not yet passed on
    std::size_t applied = 0;     // how many of them are applied
    std::uint64_t received = 0;  // position after the last one of them
    std::uint64_t part = 0;      // requests that have arrived of the next one
    std::uint64_t part_id = 0;   // id of the first of these
    std::uint64_t last_id = 0;
    std::uint64_t applied_until = 0;  // positions
    std::uint64_t saved_until = 0;    // the same, unless the data area is on a disk
    std::uint64_t passed_until = 0;
  };

  Arrival take(std::uint32_t log, std::uint64_t position);
  bool is_newer(std::uint32_t log, std::uint64_t position, const RequestHeader& header) const;
  // The first sync point whose requests are all in slots and have not been taken.
  std::optional<SyncPoint> first_newer(std::uint32_t log) const;
  bool is_sound(const RequestHeader& header) const;
  bool is_intact(std::uint32_t log, std::uint64_t position, const RequestHeader& header) const;
  void recover(std::uint32_t log);
  // These require lock_.
  Log* log_with(std::uint64_t id);
  Log* log_with_least_id();
  void drop_done(Log& log);
  // The contents of the slots up to this position are not needed anymore.
  void pass_over(Log& log, std::uint64_t position) const;
  void set_applied_until(Log& log, std::uint64_t position) const;
  void forget_not_applied(Log& log, std::uint64_t id);

  pmem::Region& region_;
  CopyState& state_;
  Shape shape_;
  bool flushes_;
  bool kept_ = false;
  std::atomic<std::uint64_t> ready_{0};  // whole sync points that are not applied

  // Guards the members below. Held for a short time, never while something is flushed.
  mutable SpinLock lock_;
  std::vector<Log> logs_;
  std::uint64_t since_checkpoint_ = 0;  // requests
  bool kept_until_saved_ = false;
  Counts counts_;
};

}  // namespace perdura::systems::mojim
