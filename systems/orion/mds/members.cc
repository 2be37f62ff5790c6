#include "systems/orion/mds/members.h"

#include <mutex>

namespace perdura::systems::orion {

namespace {

constexpr std::uint64_t kUpToDate = 1;
constexpr std::uint64_t kNeedsEverything = 2;
constexpr int kEpochShift = 8;

Bytes word_offset(std::uint32_t store) { return kMembersOffset + store * kWord; }

}  // namespace

void Members::make(pmem::Region& region, const Parameters& parameters) {
  const auto count = static_cast<std::uint32_t>(parameters.stores.size());
  for (std::uint32_t store = 0; store < count; ++store) region.store(word_offset(store), kUpToDate);
  region.persist(kMembersOffset, count * kWord);
}

Members::Members(pmem::Region& region, const Parameters& parameters, std::uint64_t opened)
    : region_(region),
      is_strong_(parameters.strong),
      epoch_(first_epoch(opened)),
      published_(epoch_) {
  for (std::uint32_t store = 0; store < parameters.stores.size(); ++store) {
    const std::uint64_t word = region.load(word_offset(store));
    const StoreRecord record{.group = parameters.stores[store].group,
                             .epoch = word >> kEpochShift,
                             .is_up_to_date = (word & kUpToDate) != 0,
                             .needs_everything = (word & kNeedsEverything) != 0};
    if (!record.is_up_to_date) outside_ |= std::uint64_t{1} << record.group;
    stores_.push_back(record);
  }
}

void Members::save(std::uint32_t store) {
  const StoreRecord& record = stores_[store];
  region_.store(word_offset(store), record.epoch << kEpochShift |
                                        (record.needs_everything ? kNeedsEverything : 0) |
                                        (record.is_up_to_date ? kUpToDate : 0));
  region_.persist(word_offset(store), kWord);
}

void Members::note_unjournaled(std::uint32_t group) {
  const std::lock_guard guard(lock_);
  for (std::uint32_t store = 0; store < stores_.size(); ++store) {
    StoreRecord& record = stores_[store];
    if (record.group != group || record.is_up_to_date || record.needs_everything) continue;
    record.needs_everything = true;
    save(store);
  }
}

bool Members::connected(std::uint32_t store, std::uint64_t epoch) {
  StoreRecord& record = stores_[store];
  // Its memory was replaced, as it has never been up to date.
  if (epoch == 0 && record.epoch != 0) {
    const std::lock_guard guard(lock_);
    bool has_peer = false;
    for (std::uint32_t other = 0; other < stores_.size(); ++other) {
      has_peer = has_peer || (other != store && stores_[other].group == record.group &&
                              stores_[other].is_up_to_date && !stores_[other].is_new);
    }
    if (!has_peer) return false;
    record.is_up_to_date = record.is_new = false;
    record.needs_everything = true;
    save(store);
  }
  record.is_connected = record.was_connected = true;
  changed_ = true;
  return true;
}

void Members::lost(std::uint32_t store) {
  if (!std::exchange(stores_[store].is_connected, false)) return;
  if (joining_ == store) joining_.reset();
  if (stores_[store].is_new) stores_[store].is_up_to_date = stores_[store].is_new = false;
  changed_ = true;
}

bool Members::join(std::uint32_t store) {
  if (joining_ || !stores_[store].is_connected || stores_[store].is_up_to_date || !peer_of(store)) {
    return false;
  }
  joining_ = store;
  changed_ = true;
  return true;
}

void Members::joined(std::uint32_t store) {
  if (joining_ != store) return;
  joining_.reset();
  stores_[store].is_up_to_date = stores_[store].is_new = true;
  changed_ = true;
  joins_.fetch_add(1, std::memory_order_relaxed);
}

std::optional<std::uint32_t> Members::peer_of(std::uint32_t store) const {
  for (std::uint32_t other = 0; other < stores_.size(); ++other) {
    const StoreRecord& record = stores_[other];
    if (other != store && record.group == stores_[store].group && record.is_connected &&
        record.is_up_to_date && !record.is_new) {
      return other;
    }
  }
  return std::nullopt;
}

StoreState Members::state_of(std::uint32_t store) const {
  if (stores_[store].is_up_to_date) return StoreState::up_to_date;
  return joining_ == store ? StoreState::joins : StoreState::out;
}

// Others go on without a store that is lost, or does not come.
void Members::remove_lost() {
  for (std::uint32_t store = 0; store < stores_.size(); ++store) {
    StoreRecord& record = stores_[store];
    const bool may_come = patient_ && !record.was_connected;
    if (!record.is_up_to_date || record.is_connected || may_come || !peer_of(store)) continue;
    const std::lock_guard guard(lock_);
    record.is_up_to_date = false;
    // Pages that were only sent to it may have been lost with its power.
    record.needs_everything = record.needs_everything || !is_strong_;
    save(store);
    removals_.fetch_add(1, std::memory_order_relaxed);
  }
}

bool Members::has_changed() const { return changed_; }

std::uint64_t Members::change() {
  changed_ = false;
  remove_lost();
  std::uint64_t outside = 0;
  for (const StoreRecord& record : stores_) {
    if (!record.is_up_to_date || record.is_new) outside |= std::uint64_t{1} << record.group;
  }
  outside_.store(outside, std::memory_order_relaxed);
  return ++epoch_;
}

StoreSet Members::up_to_date() const {
  StoreSet set = 0;
  for (std::uint32_t store = 0; store < stores_.size(); ++store) {
    if (stores_[store].is_up_to_date) set |= set_of(store);
  }
  return set;
}

MembersLine Members::publish() {
  for (std::uint32_t store = 0; store < stores_.size(); ++store) {
    StoreRecord& record = stores_[store];
    const bool is_first = record.is_up_to_date && record.is_connected && record.epoch == 0;
    if (!record.is_new && !is_first) continue;
    const std::lock_guard guard(lock_);
    record.epoch = epoch_;
    if (record.is_new) record.is_new = record.needs_everything = false;
    save(store);
  }
  published_.store(epoch_, std::memory_order_release);
  const StoreSet members = up_to_date();
  return {.epoch = epoch_,
          .members = members,
          .targets = joining_ ? members | set_of(*joining_) : members,
          .same_epoch = epoch_};
}

}  // namespace perdura::systems::orion
