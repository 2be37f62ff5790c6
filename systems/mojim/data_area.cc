#include "systems/mojim/data_area.h"

#include <algorithm>
#include <mutex>

#include "platform/runtime/work.h"

namespace perdura::systems::mojim {

DataArea::DataArea(pmem::Region& region, CopyState& state, ReceiveLogs& logs,
                   FollowingCopies& followers, const Options& options)
    : region_(&region),
      state_(state),
      logs_(logs),
      followers_(followers),
      options_(options),
      scratch_(logs.shape().slot_bytes),
      applied_now_(logs.count()) {
  logs_.keep_until_saved(is_on_disk());
  // The failure may have interrupted a checkpoint. What it has left must not be seen by readers.
  apply_ready(false);
  if (const std::uint64_t begun = state_.begun_term(); begun > state_.term()) end_term(begun);
  let_readers_in();
}

// --- checkpoints ---------------------------------------------------------------------------------

// Copies the data of a sync point into the data area, and starts to write it back if it is to be
// durable. Returns true if this was the end of a primary's copying of the region.
bool DataArea::apply(std::uint32_t log, const SyncPoint& sync) {
  bool ends_copy = false;
  for (std::uint64_t position = sync.position; position < sync.end(); ++position) {
    const RequestHeader header = logs_.header_at(log, position);
    const std::span<std::byte> data = std::span(scratch_).first(header.length);
    logs_.read_data(log, position, data);
    region_->write(header.offset, data);
    if (options_.flushes && !is_on_disk()) region_->flush(header.offset, data.size());
    ends_copy |= header.copied == kEndOfCopy;
  }
  return ends_copy;
}

// Applies whole sync points by ascending ids up to `until_id`, with `over_gaps` also after missing
// ones. False if none was applied.
bool DataArea::apply_ready(bool over_gaps, std::uint64_t until_id) {
  if (being_written_) return false;
  std::uint64_t last = state_.applied();
  bool completes = false;
  std::fill(applied_now_.begin(), applied_now_.end(), 0);
  while (const auto next = logs_.take_next(last, over_gaps, until_id)) {
    completes |= apply(next->log, next->sync);
    last = next->sync.last_id();
    applied_now_[next->log] = next->sync.end();
  }
  if (last == state_.applied()) return false;
  if (options_.flushes && !is_on_disk()) region_->drain();
  if (complete_from_ && last >= *complete_from_) {
    complete_from_.reset();
    completes = true;
  }
  if (is_on_disk()) {
    if (completes) state_.complete_when_saved(last);
    state_.set_applied(last);
  } else {
    if (completes) state_.set_incomplete(false);
    state_.store_applied(last, options_.flushes);
  }
  ++checkpoints_;
  logs_.note_applied(applied_now_);
  return true;
}

bool DataArea::checkpoint() {
  const std::unique_lock held(lock_, std::try_to_lock);
  if (!held.owns_lock()) return false;
  return options_.readers == nullptr ? apply_ready(false) : checkpoint_before_readers();
}

// --- a data area on a disk -----------------------------------------------------------------------

Task<> DataArea::save() {
  ToSave applied;
  {
    const std::lock_guard held(lock_);
    applied = to_save();
  }
  // Whatever is applied meanwhile may reach the disk, too, but the logs still have it.
  region_->persist(0, region_->size());
  co_await yield();  // others must not use the slots before this task's time
  const std::lock_guard held(lock_);
  note_saved(applied);
  let_readers_in();
}

void DataArea::save_now() {
  if (!is_on_disk()) return;
  region_->persist(0, region_->size());
  note_saved(to_save());
}

DataArea::ToSave DataArea::to_save() const {
  return {.id = state_.applied(), .until = logs_.applied_until()};
}

void DataArea::note_saved(const ToSave& saved) {
  state_.note_saved(saved.id);
  logs_.note_saved(saved.until);
}

void DataArea::use(pmem::Region& region) {
  const std::lock_guard held(lock_);
  region_ = &region;
  logs_.keep_until_saved(is_on_disk());
}

// --- primaries and the whole region --------------------------------------------------------------

void DataArea::begin_term(std::uint64_t term) {
  for (std::uint32_t log = 0; log < logs_.count(); ++log) logs_.look_for_arrived(log);
  const std::lock_guard applying(lock_);
  being_written_ = false;
  complete_from_.reset();
  state_.end_what_was_told();  // no copy has been told anything in this term
  state_.store_begun_term(term);
  end_term(term);
}

void DataArea::end_term(std::uint64_t next) {
  exclude_readers();
  apply_ready(false);
  if (options_.has_gaps && !state_.is_in_background()) apply_ready(true);
  save_now();
  state_.store_applied(begin_of(next), true);
  let_readers_in();
  logs_.forget_not_applied(ReceiveLogs::kAll);
}

void DataArea::set_in_background(bool in_background) {
  const std::lock_guard applying(lock_);
  state_.set_in_background(in_background);
}

void DataArea::skip_to(std::uint64_t id) {
  const std::lock_guard applying(lock_);
  exclude_readers();
  apply_ready(false);
  if (state_.applied() >= id) return let_readers_in();
  state_.set_incomplete(true);
  followers_.skip(id);  // no log of this node will hold it for the following copies
  save_now();
  state_.store_applied(id, true);
  logs_.forget_not_applied(id);
}

std::uint64_t DataArea::begin_writing(std::uint64_t id) {
  const std::lock_guard applying(lock_);
  exclude_readers();
  being_written_ = true;
  complete_from_.reset();
  state_.set_incomplete(true);
  if (state_.applied() < id) {
    state_.store_applied(id, true);
    logs_.forget_not_applied(id);
  }
  return ++writings_;
}

void DataArea::end_writing(std::uint64_t writing, std::uint64_t complete_from) {
  const std::lock_guard applying(lock_);
  // Another writing or a new term has begun, to which this region may not belong.
  if (!being_written_ || writing != writings_) return;
  if (options_.flushes) region_->persist(0, region_->size());
  being_written_ = false;
  if (state_.applied() >= complete_from) {
    state_.set_incomplete(false);
    let_readers_in();
  } else {
    complete_from_ = complete_from;
  }
}

void DataArea::read(Bytes offset, std::span<std::byte> into) {
  const std::lock_guard held(lock_);
  region_->read(offset, into);
}

}  // namespace perdura::systems::mojim
