// The logs of a copy, and the data area to which their contents are applied (sections 3.2.2 and
// 3.2.3). A log is filled by the device; this class is told what has arrived. A sync point is
// applied when all of its requests are there and all sync points with lower ids have been applied,
// whichever logs they are in.
//
// A data area on a disk (M-syncdisk) is written in two steps: a checkpoint changes it in the page
// cache, where readers see it, and save() waits until the disk has that. A slot may be used again
// behind the second one, and what recovery begins with is what has been saved.
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
  static constexpr std::size_t kMostCopies = 64;  // behind one

  struct Options {
    Shape shape;
    std::uint64_t checkpoint_thresh = 1;
    // What has been acknowledged may be behind what has not: sync points of other threads go on
    // when one gets lost. Else (M-async) the first one that is missing is the end, as where sync
    // points come in the background (set_in_background).
    bool has_gaps = true;
    // What the device places in a log and what a checkpoint stores in the data area are flushed
    // before anything depends on them. As published, nothing is flushed on a copy.
    bool flushes = false;
    // Of the data area, whom a checkpoint must not meet; outlives this. Null: there are none.
    services::DirectReaders* readers = nullptr;
  };

  // Finds the sync points that had arrived and not been applied, if the regions are not new. Both
  // must outlive this.
  Logs(pmem::Region& logs, pmem::Region& data, const Options& options);

  const Shape& shape() const { return options_.shape; }
  std::uint64_t term() const { return term_of(applied()); }

  // --- a log, on the thread that receives into it ------------------------------------------------

  // The position behind the last request of whole sync points, where the next one is received.
  std::uint64_t next_position(std::uint32_t log) const;
  // Slots of positions below this one may be filled.
  std::uint64_t free_until(std::uint32_t log) const;
  // The id up to which a sender need not send any more.
  std::uint64_t last_id(std::uint32_t log) const;

  enum class Arrival : std::uint8_t { more, complete, invalid };
  // The slot of this position has been filled. `complete`: its sync point is.
  Arrival arrived(std::uint32_t log, std::uint64_t position);
  // Behind the end of a connection whose last arrivals nobody has reported: looks into the slots.
  void look_for_arrived(std::uint32_t log);
  // The connection has ended: what it has sent of a sync point in part is forgotten.
  void forget_part(std::uint32_t log);

  // --- behind this copy --------------------------------------------------------------------------

  // From now on slots are kept until pass() says that the copies behind this one have them, too.
  void keep_for_others() { kept_ = true; }
  struct SyncPoint {
    std::uint64_t id = 0;        // of its first request
    std::uint64_t position = 0;  // of that
    std::uint32_t count = 0;
    std::uint64_t last_id() const { return id + count - 1; }
    std::uint64_t end() const { return position + count; }
  };
  // The first whole sync point of a log from this position on.
  std::optional<SyncPoint> whole_from(std::uint32_t log, std::uint64_t position) const;
  void pass(std::uint32_t log, std::uint64_t position);
  // Up to this id all has been passed, or will not be.
  std::uint64_t passed_id() const;
  // Requests that have not been passed, in all logs.
  std::uint64_t not_passed() const;
  // What arrives while this copy is incomplete is not passed on: the copies behind it need all of
  // the region when it is complete. The greatest id of it.
  void skip(std::uint64_t id);
  std::uint64_t skipped() const { return skipped_.load(std::memory_order_relaxed); }
  // A copy behind this one that does not answer is lost for all logs: it would wait for ever for
  // what one of them does not pass.
  void note_lost(std::size_t copy) { lost_[copy] = true; }
  const std::atomic<bool>& lost(std::size_t copy) const { return lost_[copy]; }
  bool is_lost(std::size_t copy) const { return lost_[copy].load(std::memory_order_relaxed); }
  // One thread at a time gives the region to the copy of this number behind this one. Until it
  // begins to, when all is applied here that the copy does not get otherwise, nothing is passed on:
  // what would wait to be passed would fill the logs, and something that has to be applied first
  // might not get into one.
  bool begin_giving(std::size_t copy, std::uint64_t term);
  // Whether somebody is at it, be it that nothing may be passed on until then. One who has begun to
  // in an earlier term gives something else.
  bool is_giving_for(std::size_t copy, std::uint64_t term) const;
  bool skip_until_given(std::size_t copy, std::uint64_t id);  // false: it is to be passed on
  // The id up to which the region that is given holds all; nothing: not yet. At least `least`.
  std::optional<std::uint64_t> given_from(std::size_t copy, std::uint64_t least);
  // The copy knows that it is incomplete until it has been given that.
  void note_given(std::size_t copy, std::uint64_t from) { given_until_[copy] = from; }
  std::uint64_t given_until(std::size_t copy) const { return given_until_[copy]; }
  void end_giving(std::size_t copy);
  // A copy after this one has been told that it is incomplete, as this one is. What it was told when
  // this one was incomplete for the time number `since` does not count after this one was complete.
  bool awaits_region(std::size_t copy) const { return awaits_since_[copy] == times_incomplete_; }
  void note_awaits_region(std::size_t copy, std::uint64_t since) { awaits_since_[copy] = since; }
  std::uint64_t times_incomplete() const { return times_incomplete_; }

  // --- checkpoints -------------------------------------------------------------------------------

  // Whether CHECKPOINT_THRESH requests have arrived since the last one, or a log is nearly full.
  bool wants_checkpoint() const;
  bool has_work() const { return ready_.load(std::memory_order_relaxed) > 0; }
  // Applies what can be, durably with Options::flushes. False if nothing was, if another thread is
  // at it, or if readers of the data area have to leave it first.
  bool checkpoint();
  // Of a data area on a disk; takes as long as the disk does, while checkpoints go on.
  Task<> save();
  // Whether slots of this log wait for that, and whether all that has arrived there is applied.
  bool wants_save(std::uint32_t log) const;
  bool is_applied(std::uint32_t log) const;
  // The data area has been copied to another region, which takes its place.
  void use_data(pmem::Region& data);

  // A new primary: applies what the one before may have been told to be safe, forgets the rest, and
  // takes nothing from a primary of a lower term any more.
  void begin_term(std::uint64_t term);
  // Of the present term, whose requests have not come yet: nobody waits until sync points are here.
  void set_in_background(bool in_background);
  // From now on takes requests behind this id, of the present term: those up to it will not come
  // any more. What has not been applied of them is missing, so the copy is incomplete.
  void skip_to(std::uint64_t id);
  // The node before this one begins to write its data area into this one's, which holds all up to
  // this id: nothing is applied until it ends, and the copy is complete when all up to the id is
  // applied that it names then.
  std::uint64_t begin_writing(std::uint64_t id);  // a number of this writing
  void end_writing(std::uint64_t writing, std::uint64_t complete_from);
  bool is_being_written() const { return being_written_.load(std::memory_order_relaxed); }
  // Whether the data area may be something else than the outcome of sync points; durable when
  // set_incomplete() returns. A copy becomes complete when the last request of a primary's copying
  // is applied.
  bool is_incomplete() const { return incomplete_.load(std::memory_order_relaxed); }
  void set_incomplete(bool incomplete);
  // Of a primary that goes on without a copy: its region is complete, and what it acknowledges is
  // nowhere else; durable when go_on_alone() returns. It is until the region is given to a copy.
  bool is_alone() const { return alone_.load(std::memory_order_relaxed); }
  void go_on_alone();
  // Of a copy: it is incomplete, so that readers of the data area wait until it is given the
  // region.
  void await_region();
  // Whether the region has to be given to it: not if it only has to be saved.
  bool needs_region() const { return is_incomplete() && completes_with_ == 0; }
  // Which copies a primary has given up, a bit for each; durable when set_given_up() returns.
  std::uint64_t given_up() const { return logs_region_.load(kGivenUpOffset); }
  void set_given_up(std::uint64_t copies);
  // The node is a primary now: nothing is taken from another one.
  void close() { closed_ = true; }
  bool is_closed() const { return closed_.load(std::memory_order_relaxed); }
  // The greatest id that has been applied.
  std::uint64_t applied() const { return applied_.load(std::memory_order_relaxed); }

  // What readers see; between checkpoints.
  void read(Bytes offset, std::span<std::byte> into);

  struct Counts {
    std::uint64_t checkpoints = 0;
    std::uint64_t laps = 0;       // of logs
    std::uint64_t replayed = 0;   // sync points found by recovery
    std::uint64_t discarded = 0;  // parts of sync points that recovery found
  };
  Counts counts() const;

 private:
  struct Log {
    Ring<SyncPoint> whole;       // not yet applied, or not yet passed
    std::size_t applied = 0;     // how many of them are applied
    std::uint64_t received = 0;  // position behind the last one of them
    std::uint64_t part = 0;      // requests that have come of the next one
    std::uint64_t part_id = 0;   // of its first
    std::uint64_t last_id = 0;
    std::uint64_t applied_until = 0;  // positions
    std::uint64_t saved_until = 0;    // the same, unless the data area is on a disk
    std::uint64_t passed_until = 0;
  };

  Arrival take(std::uint32_t log, std::uint64_t position);
  bool is_newer(std::uint32_t log, std::uint64_t position, const RequestHeader& header) const;
  // The first sync point of which all requests have arrived, and none has been taken.
  std::optional<SyncPoint> first_newer(std::uint32_t log) const;
  RequestHeader header_at(std::uint32_t log, std::uint64_t position) const;
  bool is_sound(const RequestHeader& header) const;
  bool is_intact(std::uint32_t log, std::uint64_t position, const RequestHeader& header) const;
  void recover(std::uint32_t log);
  Log* log_with(std::uint64_t id);
  Log* log_with_least_id();
  void drop_done(Log& log);
  // To be called with lock_: what is in the slots up to this position is not needed any more.
  void pass_over(Log& log, std::uint64_t position) const;
  void set_applied_until(Log& log, std::uint64_t position) const;
  void forget_not_applied(Log& log, std::uint64_t id);
  bool is_on_disk() const { return data_->medium() == pmem::Medium::disk; }
  // What to_save() has noted is on the disk now.
  struct ToSave {
    std::uint64_t id = 0;
    std::vector<std::uint64_t> until;  // positions, by log
  };
  ToSave to_save() const;  // these are to be called with data_lock_
  void note_saved(const ToSave& saved);
  void save_now();
  bool apply(std::uint32_t log, const SyncPoint& sync);
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};
  bool apply_ready(bool over_gaps, std::uint64_t until_id = kAll);
  // --- Options::readers; to be called with data_lock_
  bool checkpoint_before_readers();
  struct Change {
    std::uint64_t until = 0;  // id
    std::vector<services::MemoryRange> ranges;
  };
  Change next_change() const;  // of the next checkpoint
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

  // Of the members below; held for short, never while something is flushed.
  mutable SpinLock lock_;
  std::vector<Log> logs_;
  std::uint64_t since_checkpoint_ = 0;  // requests
  Counts counts_;
  std::atomic<std::uint64_t> applied_{0};
  std::atomic<bool> incomplete_{false};
  std::atomic<bool> alone_{false};
  std::atomic<bool> closed_{false};
  std::atomic<bool> being_written_{false};
  bool in_background_ = false;                  // with data_lock_
  std::optional<std::uint64_t> complete_from_;  // with data_lock_
  std::uint64_t writings_ = 0;                  // with data_lock_
  std::optional<Change> withdrawing_;           // with data_lock_; which readers are to leave
  bool readers_excluded_ = true;                // with data_lock_; from all of the data area
  std::atomic<std::uint64_t> skipped_{0};
  std::uint64_t saved_ = 0;  // id; with data_lock_
  // What is applied with this id makes the copy complete, once it is saved; 0: nothing.
  std::atomic<std::uint64_t> completes_with_{0};
  enum class Giving : std::uint8_t { none, awaited, begun };
  std::array<Giving, kMostCopies> giving_{};              // with lock_
  std::array<std::uint64_t, kMostCopies> giving_from_{};  // with lock_
  std::array<std::uint64_t, kMostCopies> giving_term_{};  // with lock_
  std::array<std::atomic<std::uint64_t>, kMostCopies> given_until_{};
  std::array<std::atomic<std::uint64_t>, kMostCopies> awaits_since_{};
  std::atomic<std::uint64_t> times_incomplete_{1};
  std::array<std::atomic<bool>, kMostCopies> lost_{};
  std::atomic<std::uint64_t> ready_{0};  // whole sync points that are not applied

  // Held by who applies, and by readers: so that readers see no sync point in part.
  SpinLock data_lock_;
  // Of who applies.
  std::vector<std::byte> scratch_;
  std::vector<std::uint64_t> applied_now_;  // by log: position behind the last one
};

}  // namespace perdura::systems::mojim
