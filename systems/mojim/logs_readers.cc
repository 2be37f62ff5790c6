// Logs: readers of the data area itself (services/memory/direct_readers.h), who must not see a
// checkpoint in progress. A checkpoint is applied when they have left its pages; meanwhile sync
// points continue to arrive. While the copy is incomplete they are excluded from the whole data
// area.
#include <mutex>
#include <utility>

#include "systems/mojim/logs.h"

namespace perdura::systems::mojim {

bool Logs::checkpoint_before_readers() {
  services::DirectReaders& readers = *options_.readers;
  if (readers_excluded_) {
    const bool applied = apply_ready(false);
    let_readers_in();
    return applied;
  }
  if (!withdrawing_) {
    if (!has_work()) return false;
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

Logs::Change Logs::next_change() const {
  Change change{.until = applied(), .ranges = {}};
  std::vector<std::pair<std::uint32_t, SyncPoint>> next;
  {
    const std::lock_guard held(lock_);
    std::vector<std::size_t> taken(logs_.size());
    for (bool found = true; found;) {
      found = false;
      for (std::uint32_t number = 0; number < logs_.size(); ++number) {
        const Log& log = logs_[number];
        const std::size_t place = log.applied + taken[number];
        if (place == log.whole.size() || log.whole[place].id != change.until + 1) continue;
        next.emplace_back(number, log.whole[place]);
        change.until = log.whole[place].last_id();
        ++taken[number];
        found = true;
      }
    }
  }
  for (const auto& [number, sync] : next) {
    for (std::uint64_t position = sync.position; position < sync.end(); ++position) {
      const RequestHeader header = header_at(number, position);
      change.ranges.push_back({header.offset, header.length});
    }
  }
  return change;
}

void Logs::exclude_readers() {
  if (options_.readers == nullptr || readers_excluded_) return;
  withdrawing_.reset();
  readers_excluded_ = true;
  options_.readers->exclude();
}

// Never on a primary, whose data area changes whenever applications store to it.
void Logs::let_readers_in() {
  if (options_.readers == nullptr || !readers_excluded_ || is_incomplete() || is_closed()) return;
  readers_excluded_ = false;
  options_.readers->end_change();
}

// Without readers it does not matter what is applied meanwhile, so there is no need to wait for the
// lock.
void Logs::await_region() {
  if (options_.readers == nullptr) return set_incomplete(true);
  const std::lock_guard held(data_lock_);
  exclude_readers();
  set_incomplete(true);
}

}  // namespace perdura::systems::mojim
