// The logs of a copy, and the data area to which their contents are applied (sections 3.2.2 and
// 3.2.3). The device fills a log, and this class is told what has arrived. A sync point is applied
// once all of its requests are there and all sync points with lower ids have been applied,
// whichever logs they are in.
//
// A data area on a disk (M-syncdisk) is written in two steps: a checkpoint changes it in the page
// cache, where readers see the change, and save() waits until the disk has it. A slot may be used
// again only after the second step, and recovery starts from what has been saved.
//
// All member functions may be called by any thread of the node.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "platform/pmem/region.h"
#include "platform/runtime/ring.h"
#include "platform/runtime/sync.h"
#include "platform/runtime/task.h"
#include "services/memory/direct_readers.h"
#include "systems/mojim/layout.h"

namespace perdura::systems::mojim {

class Logs {
 public:
  static constexpr std::size_t kMostCopies = 64;  // that follow one node

  struct Options {
    Shape shape;
    std::uint64_t checkpoint_thresh = 1;
    // True if an acknowledged sync point may come after one that is missing, since other threads go
    // on when one gets lost. Else (M-async), and where sync points arrive in the background
    // (set_in_background), the first missing one is the end.
    bool has_gaps = true;
    // Requests in a log, and what a checkpoint stores in the data area, are flushed before anything
    // depends on them. As published, nothing is flushed on a copy.
    bool flushes = false;
    // Readers of the data area itself, who must not see a checkpoint in progress. Must outlive
    // this. Null: there are none.
    services::DirectReaders* readers = nullptr;
  };

  // Recovers from regions that are not new: finds the sync points that had arrived and not been
  // applied, and applies those before the first gap. Both regions must outlive this.
  Logs(pmem::Region& logs, pmem::Region& data, const Options& options);

  const Shape& shape() const { return options_.shape; }
  std::uint64_t term() const { return term_of(applied()); }

  // --- a log, on the thread that receives into it ------------------------------------------------

  // The position after the last request of whole sync points, where the next one is received.
  std::uint64_t next_position(std::uint32_t log) const;
  // Slots at positions below this one may be filled.
  std::uint64_t free_until(std::uint32_t log) const;
  // The id up to which the sender need not send anything more to this log.
  std::uint64_t last_id(std::uint32_t log) const;

  enum class Arrival : std::uint8_t { more, complete, invalid };
  // Tells that the slot at this position has been filled. `complete`: its sync point has arrived
  // whole. `invalid`: the request cannot come next here, or this node is a primary (close()).
  Arrival arrived(std::uint32_t log, std::uint64_t position);
  // After the end of a connection whose last arrivals nobody has reported: takes the whole sync
  // points that are found in the slots.
  void look_for_arrived(std::uint32_t log);
  // After the end of a connection: forgets a sync point of which only a part has been sent.
  void forget_part(std::uint32_t log);

  // --- the copies that follow this one -----------------------------------------------------------

  // From now on slots are kept until pass() says that the following copies have them, too.
  void keep_for_others() { kept_ = true; }
  struct SyncPoint {
    std::uint64_t id = 0;        // its first request's id
    std::uint64_t position = 0;  // its first request's position
    std::uint32_t count = 0;
    std::uint64_t last_id() const { return id + count - 1; }
    std::uint64_t end() const { return position + count; }
  };
  // The first whole sync point of a log at this position or later.
  std::optional<SyncPoint> whole_from(std::uint32_t log, std::uint64_t position) const;
  // Everything in the log before this position has been passed on, or will not be.
  void pass(std::uint32_t log, std::uint64_t position);
  // Everything up to this id has been passed on, or will not be.
  std::uint64_t passed_id() const;
  // The number of requests, in all logs, that have not been passed on.
  std::uint64_t not_passed() const;
  // Notes that sync points up to this id are not passed on, since the following copies will be
  // given the whole region instead: that of this copy once it is complete. skipped() is the
  // greatest such id.
  void skip(std::uint64_t id);
  std::uint64_t skipped() const { return skipped_.load(std::memory_order_relaxed); }
  // Gives up a following copy that does not answer, for all logs: it could never apply what it gets
  // by one log while another log does not pass on what comes before.
  void note_lost(std::size_t copy) { lost_[copy] = true; }
  const std::atomic<bool>& lost(std::size_t copy) const { return lost_[copy]; }
  bool is_lost(std::size_t copy) const { return lost_[copy].load(std::memory_order_relaxed); }
  // Claims the transfer of the region to following copy `copy`; false if another thread has claimed
  // it. From now until given_from() starts the transfer, nothing is passed on to that copy: waiting
  // sync points could fill the logs, and one that must be applied first might find no slot.
  bool begin_giving(std::size_t copy, std::uint64_t term);
  // True from begin_giving() to end_giving(). A transfer that has started counts only for its own
  // term and earlier ones: in a later term another region is needed.
  bool is_giving_for(std::size_t copy, std::uint64_t term) const;
  bool skip_until_given(std::size_t copy, std::uint64_t id);  // false: it has to be passed on
  // Starts the transfer. Returns the id up to which the region holds everything, which is at least
  // `least`; nothing if not enough has been applied here yet.
  std::optional<std::uint64_t> given_from(std::size_t copy, std::uint64_t least);
  // Notes that the copy knows that it is incomplete until it has been given the region up to this
  // id.
  void note_given(std::size_t copy, std::uint64_t from) { given_until_[copy] = from; }
  std::uint64_t given_until(std::size_t copy) const { return given_until_[copy]; }
  void end_giving(std::size_t copy);
  // True if a following copy has been told that it is incomplete, as this one is. `since` is
  // times_incomplete() when it was told: this does not count any more once this copy has been
  // complete in between.
  bool awaits_region(std::size_t copy) const { return awaits_since_[copy] == times_incomplete_; }
  void note_awaits_region(std::size_t copy, std::uint64_t since) { awaits_since_[copy] = since; }
  std::uint64_t times_incomplete() const { return times_incomplete_; }

  // --- checkpoints -------------------------------------------------------------------------------

  // True if there is something to apply, and CHECKPOINT_THRESH requests have arrived since the last
  // checkpoint or a log is half full of requests that have not been applied.
  bool wants_checkpoint() const;
  bool has_work() const { return ready_.load(std::memory_order_relaxed) > 0; }
  // Applies every sync point that can be applied, durably with Options::flushes. False if there was
  // none, if another thread is applying, or if readers have to leave the data area first.
  bool checkpoint();
  // Waits until the disk has what was applied to a data area there. Checkpoints go on meanwhile.
  Task<> save();
  // True if slots of this log wait for save(); true if everything that has arrived there is
  // applied.
  bool wants_save(std::uint32_t log) const;
  bool is_applied(std::uint32_t log) const;
  // Uses another region as the data area, to which that has been copied. It must outlive this.
  void use_data(pmem::Region& data);

  // Begins the term of a new primary: applies what the one before may have been told to be safe,
  // forgets the rest, and accepts nothing from a primary of a lower term any more.
  void begin_term(std::uint64_t term);
  // Says of the present term, before its requests come, whether they arrive in the background:
  // nobody waits until its sync points are here.
  void set_in_background(bool in_background);
  // From now on accepts requests after this id, which is of the present term: those up to it will
  // not come any more. If some of them have not been applied, the copy is incomplete.
  void skip_to(std::uint64_t id);
  // The preceding node begins to WRITE its data area, which holds everything up to this id, over
  // this one. Returns the number of this writing. Nothing is applied until end_writing(); the copy
  // is complete once everything up to `complete_from` has been applied.
  std::uint64_t begin_writing(std::uint64_t id);
  void end_writing(std::uint64_t writing, std::uint64_t complete_from);
  bool is_being_written() const { return being_written_.load(std::memory_order_relaxed); }
  // True if the data area may be something else than the outcome of sync points. It is durable when
  // set_incomplete() returns. A copy becomes complete when the last request of a primary's copying
  // is applied.
  bool is_incomplete() const { return incomplete_.load(std::memory_order_relaxed); }
  void set_incomplete(bool incomplete);
  // True on a primary that goes on without a copy: its region is complete, and what it acknowledges
  // is nowhere else, until the region is given to a copy. Durable when go_on_alone() returns.
  bool is_alone() const { return alone_.load(std::memory_order_relaxed); }
  void go_on_alone();
  // Makes a copy incomplete: readers of the data area wait until it is given the region.
  void await_region();
  // True if this copy has to be given the region. False, too, if it is complete once save() has
  // run.
  bool needs_region() const { return is_incomplete() && completes_with_ == 0; }
  // The copies that a primary has given up, a bit for each; durable when set_given_up() returns.
  std::uint64_t given_up() const { return logs_region_.load(kGivenUpOffset); }
  void set_given_up(std::uint64_t copies);
  // The node is a primary now: nothing is accepted from another one.
  void close() { closed_ = true; }
  bool is_closed() const { return closed_.load(std::memory_order_relaxed); }
  // The greatest id that has been applied.
  std::uint64_t applied() const { return applied_.load(std::memory_order_relaxed); }

  // Reads what readers see: the data area between two checkpoints.
  void read(Bytes offset, std::span<std::byte> into);

  struct Counts {
    std::uint64_t checkpoints = 0;
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
  RequestHeader header_at(std::uint32_t log, std::uint64_t position) const;
  bool is_sound(const RequestHeader& header) const;
  bool is_intact(std::uint32_t log, std::uint64_t position, const RequestHeader& header) const;
  void recover(std::uint32_t log);
  Log* log_with(std::uint64_t id);
  Log* log_with_least_id();
  void drop_done(Log& log);
  // Requires lock_. The contents of the slots up to this position are not needed any more.
  void pass_over(Log& log, std::uint64_t position) const;
  void set_applied_until(Log& log, std::uint64_t position) const;
  void forget_not_applied(Log& log, std::uint64_t id);
  bool is_on_disk() const { return data_->medium() == pmem::Medium::disk; }
  // How far the logs are applied at some time, to be noted as saved when the disk has that.
  struct ToSave {
    std::uint64_t id = 0;
    std::vector<std::uint64_t> until;  // positions, by log
  };
  ToSave to_save() const;  // requires data_lock_, as the next two
  void note_saved(const ToSave& saved);
  void save_now();
  bool apply(std::uint32_t log, const SyncPoint& sync);
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};
  bool apply_ready(bool over_gaps, std::uint64_t until_id = kAll);
  // --- Options::readers; these require data_lock_
  bool checkpoint_before_readers();
  struct Change {
    std::uint64_t until = 0;  // the last id
    std::vector<services::MemoryRange> ranges;
  };
  Change next_change() const;  // what the next checkpoint changes
  void exclude_readers();
  void let_readers_in();
  void end_term(std::uint64_t next);
  void store_completeness(std::uint64_t completeness);
  void store_applied(std::uint64_t id, bool durably);
  void write_applied(std::uint64_t id, bool durably);

  pmem::Region& logs_region_;
  pmem::Region* data_;
  Options options_;
  bool kept_ = false;

  // Guards the members below that are neither atomic nor marked otherwise. Held for a short time,
  // never while something is flushed.
  mutable SpinLock lock_;
  std::vector<Log> logs_;
  std::uint64_t since_checkpoint_ = 0;  // requests
  Counts counts_;
  std::atomic<std::uint64_t> applied_{0};
  std::atomic<bool> incomplete_{false};
  std::atomic<bool> alone_{false};
  std::atomic<bool> closed_{false};
  std::atomic<bool> being_written_{false};
  bool in_background_ = false;                  // guarded by data_lock_
  std::optional<std::uint64_t> complete_from_;  // guarded by data_lock_
  std::uint64_t writings_ = 0;                  // guarded by data_lock_
  std::optional<Change> withdrawing_;           // guarded by data_lock_; being left by readers
  bool readers_excluded_ = true;                // guarded by data_lock_; from all of the data area
  std::atomic<std::uint64_t> skipped_{0};
  std::uint64_t saved_ = 0;  // id; guarded by data_lock_
  // The copy is complete once everything applied up to this id is saved; 0: it is not waiting for
  // that.
  std::atomic<std::uint64_t> completes_with_{0};
  enum class Giving : std::uint8_t { none, awaited, begun };
  std::array<Giving, kMostCopies> giving_{};              // guarded by lock_
  std::array<std::uint64_t, kMostCopies> giving_from_{};  // guarded by lock_
  std::array<std::uint64_t, kMostCopies> giving_term_{};  // guarded by lock_
  std::array<std::atomic<std::uint64_t>, kMostCopies> given_until_{};
  std::array<std::atomic<std::uint64_t>, kMostCopies> awaits_since_{};
  std::atomic<std::uint64_t> times_incomplete_{1};
  std::array<std::atomic<bool>, kMostCopies> lost_{};
  std::atomic<std::uint64_t> ready_{0};  // whole sync points that are not applied

  // Held while sync points are applied and while the data area is read, so that readers never see a
  // part of a sync point.
  SpinLock data_lock_;
  // Buffers for applying.
  std::vector<std::byte> scratch_;
  std::vector<std::uint64_t> applied_now_;  // for each log, the position after the last one
};

}  // namespace perdura::systems::mojim
