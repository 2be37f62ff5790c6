// DataArea: readers of the data area itself (services/memory/direct_readers.h), who must not see a
// checkpoint in progress. A checkpoint is applied when they have left its pages; meanwhile sync
// points continue to arrive. While the copy is incomplete they are excluded from the whole data
// area.
#include <mutex>

#include "systems/mojim/data_area.h"

namespace perdura::systems::mojim {

bool DataArea::checkpoint_before_readers() {
  services::DirectReaders& readers = *options_.readers;
  if (readers_excluded_) {
    const bool applied = apply_ready(false);
    let_readers_in();
    return applied;
  }
  if (!withdrawing_) {
    if (!logs_.has_work()) return false;
    if (!readers.begin_change()) {
      const bool applied = apply_ready(false);
      readers.end_change();
      return applied;
    }
    withdrawing_ = next_change();
  }
  if (!withdrawing_->ranges.empty() && !readers.withdraw(withdrawing_->ranges)) return false;
  // Sync points that have arrived meanwhile belong to the next checkpoint: readers still have their
  // pages.
  const bool applied = apply_ready(false, withdrawing_->until);
  withdrawing_.reset();
  readers.end_change();
  return applied;
}

DataArea::CheckpointChange DataArea::next_change() const {
  CheckpointChange change{.until = state_.applied(), .ranges = {}};
  for (const auto& [log, sync] : logs_.whole_after(change.until)) {
    for (std::uint64_t position = sync.position; position < sync.end(); ++position) {
      const RequestHeader header = logs_.header_at(log, position);
      change.ranges.push_back({header.offset, header.length});
    }
    change.until = sync.last_id();
  }
  return change;
}

void DataArea::exclude_readers() {
  if (options_.readers == nullptr || readers_excluded_) return;
  withdrawing_.reset();
  readers_excluded_ = true;
  options_.readers->exclude();
}

// Never on a primary, whose data area changes whenever applications store to it.
void DataArea::let_readers_in() {
  if (options_.readers == nullptr || !readers_excluded_ || state_.is_incomplete() ||
      state_.is_closed())
    return;
  readers_excluded_ = false;
  options_.readers->end_change();
}

// Without readers it does not matter what is applied meanwhile, so there is no need to wait for the
// lock.
void DataArea::await_region() {
  if (options_.readers == nullptr) return state_.set_incomplete(true);
  const std::lock_guard held(lock_);
  exclude_readers();
  state_.set_incomplete(true);
}

}  // namespace perdura::systems::mojim
