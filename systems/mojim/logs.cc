#include "systems/mojim/logs.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "platform/runtime/work.h"

namespace perdura::systems::mojim {

Logs::Logs(pmem::Region& logs, pmem::Region& data, const Options& options)
    : logs_region_(logs),
      data_(&data),
      options_(options),
      logs_(options.shape.logs),
      scratch_(options.shape.slot_bytes),
      applied_now_(options.shape.logs) {
  applied_ = logs.load(kAppliedOffset);
  incomplete_ = logs.load(kIncompleteOffset) == kIncomplete;
  alone_ = logs.load(kIncompleteOffset) == kAlone;
  in_background_ = logs.load(kInBackgroundOffset) != 0;
  for (std::uint32_t log = 0; log < logs_.size(); ++log) {
    logs_[log].last_id = applied_;
    recover(log);
  }
  saved_ = applied_;
  // The failure may have interrupted a checkpoint. What it has left must not be seen by readers.
  apply_ready(false);
  if (const std::uint64_t begun = logs.load(kBegunOffset); begun > term()) end_term(begun);
  let_readers_in();
}

RequestHeader Logs::header_at(std::uint32_t log, std::uint64_t position) const {
  return logs_region_.read_object<RequestHeader>(shape().slot_offset(log, position));
}

// Returns true if a log can hold a request with this header at all.
bool Logs::is_sound(const RequestHeader& header) const {
  return header.count > 0 && header.count <= shape().slots && header.index < header.count &&
         header.length <= shape().slot_bytes && header.offset <= shape().size &&
         header.length <= shape().size - header.offset;
}

bool Logs::is_intact(std::uint32_t log, std::uint64_t position, const RequestHeader& header) const {
  if (!is_sound(header)) return false;
  if (shape().checked == 0) return true;
  std::vector<std::byte> data(header.length);
  logs_region_.read(shape().slot_offset(log, position) + sizeof header, data);
  return header.crc == checksum(header, data);
}

namespace {

// Returns true if the other requests of a sync point follow its first one. `behind(i)` returns the
// header in the slot that is i slots after that one, or an empty header if the slot holds nothing
// usable.
template <class Behind>
bool is_whole(const RequestHeader& first, Behind behind) {
  for (std::uint32_t index = 1; index < first.count; ++index) {
    const RequestHeader next = behind(index);
    if (next.id != first.id + index || next.index != index || next.count != first.count) {
      return false;
    }
  }
  return true;
}

}  // namespace

// --- recovery ------------------------------------------------------------------------------------

// Section 3.2.3: end marks and ids tell which sync points are whole, and only those are taken.
// Slots still hold requests that have been applied, and requests of primaries that were replaced;
// neither counts.
void Logs::recover(std::uint32_t number) {
  Log& log = logs_[number];
  const std::uint64_t slots = shape().slots;
  std::vector<RequestHeader> headers(slots);
  std::uint64_t found = 0;
  std::vector<SyncPoint> whole;
  for (std::uint64_t slot = 0; slot < slots; ++slot) {
    const RequestHeader header = header_at(number, slot);
    if (header.id <= applied() || term_of(header.id) != term()) continue;
    if (!is_intact(number, slot, header)) continue;
    headers[slot] = header;
    ++found;
  }
  for (std::uint64_t slot = 0; slot < slots; ++slot) {
    const RequestHeader& first = headers[slot];
    if (first.count == 0 || first.index != 0) continue;
    const auto behind = [&](std::uint32_t index) { return headers[(slot + index) % slots]; };
    if (!is_whole(first, behind)) continue;
    whole.push_back({first.id, slot, first.count});
    found -= first.count;
  }
  std::sort(whole.begin(), whole.end(),
            [](const SyncPoint& a, const SyncPoint& b) { return a.id < b.id; });
  std::uint64_t behind = 0;
  for (SyncPoint& sync : whole) {
    while (sync.position < behind) sync.position += slots;
    behind = sync.end();
    log.whole.push_back(sync);
  }
  counts_.replayed += whole.size();
  counts_.discarded += found;
  if (whole.empty()) return;
  log.received = behind;
  log.last_id = whole.back().last_id();
  log.applied_until = log.saved_until = log.passed_until = whole.front().position;
  ready_ += whole.size();
}

// --- receiving -----------------------------------------------------------------------------------

std::uint64_t Logs::next_position(std::uint32_t log) const {
  const std::lock_guard held(lock_);
  return logs_[log].received;
}

std::uint64_t Logs::free_until(std::uint32_t number) const {
  const std::lock_guard held(lock_);
  const Log& log = logs_[number];
  const std::uint64_t done = kept_ ? std::min(log.saved_until, log.passed_until) : log.saved_until;
  return done + shape().slots;
}

std::uint64_t Logs::last_id(std::uint32_t log) const {
  const std::lock_guard held(lock_);
  return std::max(logs_[log].last_id, applied());
}

Logs::Arrival Logs::arrived(std::uint32_t log, std::uint64_t position) {
  return is_closed() ? Arrival::invalid : take(log, position);
}

Logs::Arrival Logs::take(std::uint32_t number, std::uint64_t position) {
  const RequestHeader header = header_at(number, position);
  if (!is_sound(header) || term_of(header.id) != term()) return Arrival::invalid;
  if (options_.flushes) {
    logs_region_.flush(shape().slot_offset(number, position), sizeof header + header.length);
  }
  const bool ends = header.index + 1 == header.count;
  if (ends && options_.flushes) logs_region_.drain();
  const std::lock_guard held(lock_);
  Log& log = logs_[number];
  if (header.index != log.part || position != log.received + log.part) return Arrival::invalid;
  if (log.part == 0) log.part_id = header.id;
  if (header.id != log.part_id + log.part) return Arrival::invalid;
  ++log.part;
  ++since_checkpoint_;
  if (!ends) return Arrival::more;
  // It was sent before the region was given to this copy, so the region holds it already.
  if (header.id <= log.last_id) {
    pass_over(log, log.received + log.part);
    return Arrival::complete;
  }
  log.whole.push_back({log.part_id, log.received, header.count});
  if (log.received / shape().slots != (log.received + log.part) / shape().slots) ++counts_.laps;
  log.received += log.part;
  log.last_id = header.id;
  log.part = 0;
  ++ready_;
  return Arrival::complete;
}

void Logs::forget_part(std::uint32_t number) {
  const std::lock_guard held(lock_);
  logs_[number].part = 0;
}

void Logs::set_applied_until(Log& log, std::uint64_t position) const {
  log.applied_until = position;
  if (!is_on_disk()) log.saved_until = position;
}

void Logs::pass_over(Log& log, std::uint64_t position) const {
  log.received = position;
  log.part = 0;
  if (log.applied == log.whole.size()) set_applied_until(log, position);
  if (log.whole.empty()) log.passed_until = position;
}

void Logs::look_for_arrived(std::uint32_t log) {
  forget_part(log);
  while (const auto sync = first_newer(log)) {
    {
      const std::lock_guard held(lock_);
      if (sync->position > logs_[log].received) pass_over(logs_[log], sync->position);
    }
    for (std::uint64_t next = sync->position; next < sync->end(); ++next) {
      if (take(log, next) == Arrival::invalid) return forget_part(log);
    }
  }
}

bool Logs::is_newer(std::uint32_t log, std::uint64_t position, const RequestHeader& header) const {
  return term_of(header.id) == term() && header.id > last_id(log) &&
         is_intact(log, position, header);
}

// The slots before it hold what was sent before the region was given to this copy, since a
// connection fills slots in turn. A partial sync point is left over from a connection that has
// ended; the present connection may not have got that far.
std::optional<Logs::SyncPoint> Logs::first_newer(std::uint32_t log) const {
  const std::uint64_t begin = next_position(log);
  for (std::uint64_t position = begin; position < begin + shape().slots; ++position) {
    const RequestHeader first = header_at(log, position);
    if (first.index != 0 || !is_newer(log, position, first)) continue;
    const auto behind = [&](std::uint32_t index) {
      const RequestHeader next = header_at(log, position + index);
      return is_newer(log, position + index, next) ? next : RequestHeader{};
    };
    if (is_whole(first, behind)) return SyncPoint{first.id, position, first.count};
  }
  return std::nullopt;
}

// --- checkpoints ---------------------------------------------------------------------------------

bool Logs::wants_checkpoint() const {
  const std::lock_guard held(lock_);
  if (ready_ == 0) return false;
  if (since_checkpoint_ >= options_.checkpoint_thresh) return true;
  return std::any_of(logs_.begin(), logs_.end(), [&](const Log& log) {
    return log.received + log.part - log.applied_until >= shape().slots / 2;
  });
}

Logs::Log* Logs::log_with(std::uint64_t id) {
  const auto found = std::find_if(logs_.begin(), logs_.end(), [&](const Log& log) {
    return log.applied < log.whole.size() && log.whole[log.applied].id == id;
  });
  return found == logs_.end() ? nullptr : &*found;
}

Logs::Log* Logs::log_with_least_id() {
  Log* least = nullptr;
  for (Log& log : logs_) {
    if (log.applied == log.whole.size()) continue;
    if (least == nullptr || log.whole[log.applied].id < least->whole[least->applied].id) {
      least = &log;
    }
  }
  return least;
}

void Logs::drop_done(Log& log) {
  while (log.applied > 0 && (!kept_ || log.whole.front().end() <= log.passed_until)) {
    log.whole.pop_front();
    --log.applied;
  }
}

// Copies the data of a sync point into the data area, and starts to write it back if it is to be
// durable. Returns true if this was the end of a primary's copying of the region.
bool Logs::apply(std::uint32_t number, const SyncPoint& sync) {
  bool ends_copy = false;
  for (std::uint64_t position = sync.position; position < sync.end(); ++position) {
    const RequestHeader header = header_at(number, position);
    const std::span<std::byte> data = std::span(scratch_).first(header.length);
    logs_region_.read(shape().slot_offset(number, position) + sizeof header, data);
    data_->write(header.offset, data);
    if (options_.flushes && !is_on_disk()) data_->flush(header.offset, data.size());
    ends_copy |= header.copied == kEndOfCopy;
  }
  return ends_copy;
}

// Requires data_lock_. Applies whole sync points by ascending ids up to `until_id`, with
// `over_gaps` also after missing ones. False if none was applied.
bool Logs::apply_ready(bool over_gaps, std::uint64_t until_id) {
  if (is_being_written()) return false;
  std::uint64_t last = applied();
  bool completes = false;
  std::fill(applied_now_.begin(), applied_now_.end(), 0);
  for (;;) {
    std::optional<SyncPoint> sync;
    std::uint32_t number = 0;
    {
      const std::lock_guard held(lock_);
      Log* const log = over_gaps ? log_with_least_id() : log_with(last + 1);
      if (log == nullptr || log->whole[log->applied].last_id() > until_id) break;
      number = static_cast<std::uint32_t>(log - logs_.data());
      sync = log->whole[log->applied++];
      --ready_;
    }
    completes |= apply(number, *sync);
    last = sync->last_id();
    applied_now_[number] = sync->end();
  }
  if (last == applied()) return false;
  if (options_.flushes && !is_on_disk()) data_->drain();
  if (complete_from_ && last >= *complete_from_) {
    complete_from_.reset();
    completes = true;
  }
  if (is_on_disk()) {
    if (completes) completes_with_ = last;
    applied_ = last;
  } else {
    if (completes) set_incomplete(false);
    store_applied(last, options_.flushes);
  }
  const std::lock_guard held(lock_);
  ++counts_.checkpoints;
  since_checkpoint_ = 0;
  for (std::size_t number = 0; number < logs_.size(); ++number) {
    Log& log = logs_[number];
    set_applied_until(log, log.applied == log.whole.size()
                               ? log.received
                               : std::max(log.applied_until, applied_now_[number]));
    if (!kept_) log.passed_until = log.applied_until;
    drop_done(log);
  }
  return true;
}

// From then on recovery ignores requests up to this id, and their slots may be filled again.
void Logs::store_applied(std::uint64_t id, bool durably) {
  write_applied(id, durably);
  applied_ = id;
}

void Logs::write_applied(std::uint64_t id, bool durably) {
  logs_region_.store(kAppliedOffset, id);
  if (durably) logs_region_.persist(kAppliedOffset, kWord);
  saved_ = id;
}

void Logs::set_incomplete(bool incomplete) {
  completes_with_ = 0;
  if (incomplete_ == incomplete) return;
  if (incomplete) ++times_incomplete_;
  store_completeness(incomplete ? kIncomplete : kComplete);
}

void Logs::go_on_alone() {
  if (is_alone()) return;
  completes_with_ = 0;
  store_completeness(kAlone);
}

void Logs::store_completeness(std::uint64_t completeness) {
  logs_region_.store(kIncompleteOffset, completeness);
  logs_region_.persist(kIncompleteOffset, kWord);
  incomplete_ = completeness == kIncomplete;
  alone_ = completeness == kAlone;
}

void Logs::set_given_up(std::uint64_t copies) {
  if (given_up() == copies) return;
  logs_region_.store(kGivenUpOffset, copies);
  logs_region_.persist(kGivenUpOffset, kWord);
}

bool Logs::checkpoint() {
  const std::unique_lock held(data_lock_, std::try_to_lock);
  if (!held.owns_lock()) return false;
  return options_.readers == nullptr ? apply_ready(false) : checkpoint_before_readers();
}

// --- a data area on a disk -----------------------------------------------------------------------

bool Logs::wants_save(std::uint32_t log) const {
  const std::lock_guard held(lock_);
  return logs_[log].saved_until < logs_[log].applied_until;
}

bool Logs::is_applied(std::uint32_t log) const {
  const std::lock_guard held(lock_);
  return logs_[log].applied_until == logs_[log].received + logs_[log].part;
}

Task<> Logs::save() {
  ToSave applied;
  {
    const std::lock_guard held(data_lock_);
    applied = to_save();
  }
  // Whatever is applied meanwhile may reach the disk, too, but the logs still have it.
  data_->persist(0, data_->size());
  co_await yield();  // others must not use the slots before this task's time
  const std::lock_guard held(data_lock_);
  note_saved(applied);
  let_readers_in();
}

void Logs::save_now() {
  if (!is_on_disk()) return;
  data_->persist(0, data_->size());
  note_saved(to_save());
}

Logs::ToSave Logs::to_save() const {
  ToSave applied{.id = this->applied(), .until = {}};
  const std::lock_guard held(lock_);
  for (const Log& log : logs_) applied.until.push_back(log.applied_until);
  return applied;
}

void Logs::note_saved(const ToSave& saved) {
  const std::uint64_t completes_with = completes_with_;
  if (completes_with != 0 && completes_with <= saved.id) set_incomplete(false);
  if (saved.id > saved_) write_applied(saved.id, true);
  const std::lock_guard held(lock_);
  for (std::size_t number = 0; number < logs_.size(); ++number) {
    logs_[number].saved_until = std::max(logs_[number].saved_until, saved.until[number]);
  }
}

void Logs::use_data(pmem::Region& data) {
  const std::lock_guard held(data_lock_);
  data_ = &data;
}

void Logs::begin_term(std::uint64_t term) {
  for (std::uint32_t log = 0; log < logs_.size(); ++log) look_for_arrived(log);
  const std::lock_guard applying(data_lock_);
  being_written_ = false;
  complete_from_.reset();
  ++times_incomplete_;  // no copy has been told anything in this term
  logs_region_.store(kBegunOffset, term);
  logs_region_.persist(kBegunOffset, kWord);
  end_term(term);
}

// Requires data_lock_.
void Logs::end_term(std::uint64_t next) {
  exclude_readers();
  apply_ready(false);
  if (options_.has_gaps && !in_background_) apply_ready(true);
  save_now();
  store_applied(begin_of(next), true);
  let_readers_in();
  const std::lock_guard held(lock_);
  for (Log& log : logs_) forget_not_applied(log, kAll);
}

void Logs::set_in_background(bool in_background) {
  const std::lock_guard applying(data_lock_);
  if (std::exchange(in_background_, in_background) == in_background) return;
  logs_region_.store(kInBackgroundOffset, in_background ? 1 : 0);
  logs_region_.persist(kInBackgroundOffset, kWord);
}

void Logs::skip_to(std::uint64_t id) {
  const std::lock_guard applying(data_lock_);
  exclude_readers();
  apply_ready(false);
  if (applied() >= id) return let_readers_in();
  set_incomplete(true);
  skip(id);  // no log of this node will hold it for the following copies
  save_now();
  store_applied(id, true);
  const std::lock_guard held(lock_);
  for (Log& log : logs_) forget_not_applied(log, id);
}

std::uint64_t Logs::begin_writing(std::uint64_t id) {
  const std::lock_guard applying(data_lock_);
  exclude_readers();
  being_written_ = true;
  complete_from_.reset();
  set_incomplete(true);
  if (applied() < id) {
    store_applied(id, true);
    const std::lock_guard held(lock_);
    for (Log& log : logs_) forget_not_applied(log, id);
  }
  return ++writings_;
}

void Logs::end_writing(std::uint64_t writing, std::uint64_t complete_from) {
  const std::lock_guard applying(data_lock_);
  // Another writing or a new term has begun, to which this region may not belong.
  if (!is_being_written() || writing != writings_) return;
  if (options_.flushes) data_->persist(0, data_->size());
  being_written_ = false;
  if (applied() >= complete_from) {
    set_incomplete(false);
    let_readers_in();
  } else {
    complete_from_ = complete_from;
  }
}

// Requires lock_. Drops the sync points up to this id that have not been applied.
void Logs::forget_not_applied(Log& log, std::uint64_t id) {
  while (log.applied < log.whole.size() && log.whole[log.applied].last_id() <= id) {
    log.whole.take(log.applied);
    --ready_;
  }
  if (log.applied == log.whole.size()) {
    log.part = 0;
    log.last_id = std::max(applied(), log.last_id <= id ? std::uint64_t{0} : log.last_id);
    set_applied_until(log, log.received);
    if (log.whole.empty()) log.passed_until = log.received;
  } else {
    set_applied_until(log, log.whole[log.applied].position);
    if (log.applied == 0) log.passed_until = log.applied_until;
  }
}

void Logs::read(Bytes offset, std::span<std::byte> into) {
  const std::lock_guard held(data_lock_);
  data_->read(offset, into);
}

Logs::Counts Logs::counts() const {
  const std::lock_guard held(lock_);
  return counts_;
}

}  // namespace perdura::systems::mojim
