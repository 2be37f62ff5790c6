// The data area of a copy: the bytes of the region, to which the sync points in the logs are
// applied (section 3.2.3). A sync point is applied once all of its requests are there and all sync
// points with lower ids have been applied, whichever logs they are in.
//
// A data area on a disk (M-syncdisk) is written in two steps: a checkpoint changes it in the page
// cache, where readers see the change, and save() waits until the disk has it. A slot may be used
// again only after the second step, and recovery starts from what has been saved.
//
// Three events replace sync points that have not been applied: the term of a new primary, requests
// that will not come anymore, and the whole region, which the preceding node WRITEs over the data
// area.
//
// All member functions may be called by any thread of the node.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "platform/pmem/region.h"
#include "platform/runtime/sync.h"
#include "platform/runtime/task.h"
#include "services/memory/direct_readers.h"
#include "systems/mojim/copy_state.h"
#include "systems/mojim/following_copies.h"
#include "systems/mojim/receive_logs.h"

namespace perdura::systems::mojim {

class DataArea {
 public:
  struct Options {
    // Requests after which a checkpoint is wanted.
    std::uint64_t checkpoint_thresh = 1;
    // True if an acknowledged sync point may come after one that is missing, since other threads go
    // on when one gets lost. Else (M-async), and where sync points arrive in the background
    // (set_in_background), the first missing one is the end.
    bool has_gaps = true;
    // Whatever a checkpoint stores is flushed before anything depends on it. As published, nothing
    // is flushed on a copy.
    bool flushes = false;
    // Readers of the data area itself, who must not see a checkpoint in progress. Must outlive
    // this. Null: there are none.
    services::DirectReaders* readers = nullptr;
  };

  // Applies what had arrived before a failure, before the first gap. All must outlive this.
  DataArea(pmem::Region& region, CopyState& state, ReceiveLogs& logs, FollowingCopies& followers,
           const Options& options);

  // --- checkpoints -------------------------------------------------------------------------------

  // True if there is something to apply, and CHECKPOINT_THRESH requests have arrived since the last
  // checkpoint or a log is half full of requests that have not been applied.
  bool wants_checkpoint() const { return logs_.is_checkpoint_due(options_.checkpoint_thresh); }
  // Applies every sync point that can be applied, durably with Options::flushes. False if there was
  // none, if another thread is applying, or if readers have to leave the data area first.
  bool checkpoint();
  // Waits until the disk has what was applied to a data area there. Checkpoints go on meanwhile.
  Task<> save();
  // The number of checkpoints that have applied something.
  std::uint64_t checkpoints() const { return checkpoints_.load(std::memory_order_relaxed); }

  // Reads what readers see: the data area between two checkpoints.
  void read(Bytes offset, std::span<std::byte> into);
  // Uses another region as the data area, to which that has been copied. It must outlive this.
  void use(pmem::Region& region);

  // --- primaries and the whole region ------------------------------------------------------------

  // Begins the term of a new primary: applies what the one before may have been told to be safe,
  // forgets the rest, and accepts nothing from a primary of a lower term anymore.
  void begin_term(std::uint64_t term);
  // Says of the present term, before its requests come, whether they arrive in the background:
  // nobody waits until its sync points are here.
  void set_in_background(bool in_background);
  // From now on accepts requests after this id, which is of the present term: those up to it will
  // not come anymore. If some of them have not been applied, the copy is incomplete.
  void skip_to(std::uint64_t id);
  // Makes a copy incomplete: readers of the data area wait until it is given the region.
  void await_region();
  // The preceding node begins to WRITE its data area, which holds everything up to this id, over
  // this one. Returns the number of this writing. Nothing is applied until end_writing(); the copy
  // is complete once everything up to `complete_from` has been applied.
  std::uint64_t begin_writing(std::uint64_t id);
  void end_writing(std::uint64_t writing, std::uint64_t complete_from);

 private:
  bool is_on_disk() const { return region_->medium() == pmem::Medium::disk; }
  // The remaining functions require lock_.
  bool apply(std::uint32_t log, const SyncPoint& sync);
  bool apply_ready(bool over_gaps, std::uint64_t until_id = ReceiveLogs::kAll);
  void end_term(std::uint64_t next);
  // How far the logs are applied at some time, to be noted as saved when the disk has that.
  struct ToSave {
    std::uint64_t id = 0;
    std::vector<std::uint64_t> until;  // positions, by log
  };
  ToSave to_save() const;
  void note_saved(const ToSave& saved);
  void save_now();
  // --- Options::readers (data_area_readers.cc)
  bool checkpoint_before_readers();
  struct CheckpointChange {
    std::uint64_t until = 0;  // the last id
    std::vector<services::MemoryRange> ranges;
  };
  CheckpointChange next_change() const;  // what the next checkpoint changes
  void exclude_readers();
  void let_readers_in();

  pmem::Region* region_;
  CopyState& state_;
  ReceiveLogs& logs_;
  FollowingCopies& followers_;
  const Options options_;
  std::atomic<std::uint64_t> checkpoints_{0};

  // Held while sync points are applied and while the data area is read, so that readers never see a
  // part of a sync point. Guards the members below.
  SpinLock lock_;
  bool being_written_ = false;
  std::uint64_t writings_ = 0;
  std::optional<std::uint64_t> complete_from_;
  std::optional<CheckpointChange> withdrawing_;  // the change whose pages readers are leaving
  bool readers_excluded_ = true;                 // from all of the data area
  // Buffers for applying.
  std::vector<std::byte> scratch_;
  std::vector<std::uint64_t> applied_now_;  // for each log, the position after the last one
};

}  // namespace perdura::systems::mojim
