#include "systems/mojim/receive_logs.h"

#include <algorithm>
#include <mutex>

namespace perdura::systems::mojim {

ReceiveLogs::ReceiveLogs(pmem::Region& region, CopyState& state, const Shape& shape, bool flushes)
    : region_(region), state_(state), shape_(shape), flushes_(flushes), logs_(shape.logs) {
  for (std::uint32_t log = 0; log < count(); ++log) {
    logs_[log].last_id = state_.applied();
    recover(log);
  }
}

RequestHeader ReceiveLogs::header_at(std::uint32_t log, std::uint64_t position) const {
  return region_.read_object<RequestHeader>(shape().slot_offset(log, position));
}

// Returns true if a log can hold a request with this header at all.
bool ReceiveLogs::is_sound(const RequestHeader& header) const {
  return header.count > 0 && header.count <= shape().slots && header.index < header.count &&
         header.length <= shape().slot_bytes && header.offset <= shape().size &&
         header.length <= shape().size - header.offset;
}

bool ReceiveLogs::is_intact(std::uint32_t log, std::uint64_t position,
                            const RequestHeader& header) const {
  if (!is_sound(header)) return false;
  if (shape().checked == 0) return true;
  std::vector<std::byte> data(header.length);
  region_.read(shape().slot_offset(log, position) + sizeof header, data);
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
void ReceiveLogs::recover(std::uint32_t number) {
  Log& log = logs_[number];
  const std::uint64_t slots = shape().slots;
  std::vector<RequestHeader> headers(slots);
  std::uint64_t found = 0;
  std::vector<SyncPoint> whole;
  for (std::uint64_t slot = 0; slot < slots; ++slot) {
    const RequestHeader header = header_at(number, slot);
    if (header.id <= state_.applied() || term_of(header.id) != state_.term()) continue;
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

std::uint64_t ReceiveLogs::next_position(std::uint32_t log) const {
  const std::lock_guard held(lock_);
  return logs_[log].received;
}

std::uint64_t ReceiveLogs::free_until(std::uint32_t number) const {
  const std::lock_guard held(lock_);
  const Log& log = logs_[number];
  const std::uint64_t done = kept_ ? std::min(log.saved_until, log.passed_until) : log.saved_until;
  return done + shape().slots;
}

std::uint64_t ReceiveLogs::last_id(std::uint32_t log) const {
  const std::lock_guard held(lock_);
  return std::max(logs_[log].last_id, state_.applied());
}

ReceiveLogs::Arrival ReceiveLogs::arrived(std::uint32_t log, std::uint64_t position) {
  return state_.is_closed() ? Arrival::invalid : take(log, position);
}

ReceiveLogs::Arrival ReceiveLogs::take(std::uint32_t number, std::uint64_t position) {
  const RequestHeader header = header_at(number, position);
  if (!is_sound(header) || term_of(header.id) != state_.term()) return Arrival::invalid;
  if (flushes_) {
    region_.flush(shape().slot_offset(number, position), sizeof header + header.length);
  }
  const bool ends = header.index + 1 == header.count;
  if (ends && flushes_) region_.drain();
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

void ReceiveLogs::forget_part(std::uint32_t number) {
  const std::lock_guard held(lock_);
  logs_[number].part = 0;
}

void ReceiveLogs::set_applied_until(Log& log, std::uint64_t position) const {
  log.applied_until = position;
  if (!kept_until_saved_) log.saved_until = position;
}

void ReceiveLogs::pass_over(Log& log, std::uint64_t position) const {
  log.received = position;
  log.part = 0;
  if (log.applied == log.whole.size()) set_applied_until(log, position);
  if (log.whole.empty()) log.passed_until = position;
}

void ReceiveLogs::look_for_arrived(std::uint32_t log) {
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

bool ReceiveLogs::is_newer(std::uint32_t log, std::uint64_t position,
                           const RequestHeader& header) const {
  return term_of(header.id) == state_.term() && header.id > last_id(log) &&
         is_intact(log, position, header);
}

// The slots before it hold what was sent before the region was given to this copy, since a
// connection fills slots in turn. A partial sync point is left over from a connection that has
// ended; the present connection may not have got that far.
std::optional<SyncPoint> ReceiveLogs::first_newer(std::uint32_t log) const {
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

// --- passing on ----------------------------------------------------------------------------------

std::optional<SyncPoint> ReceiveLogs::whole_from(std::uint32_t number,
                                                 std::uint64_t position) const {
  const std::lock_guard held(lock_);
  const Ring<SyncPoint>& whole = logs_[number].whole;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (whole[i].position >= position) return whole[i];
  }
  return std::nullopt;
}

void ReceiveLogs::pass(std::uint32_t number, std::uint64_t position) {
  const std::lock_guard held(lock_);
  Log& log = logs_[number];
  if (position <= log.passed_until) return;
  const bool is_all = log.whole.empty() || log.whole[log.whole.size() - 1].end() <= position;
  log.passed_until = is_all ? log.received : position;
  drop_done(log);
}

std::uint64_t ReceiveLogs::passed_id() const {
  const std::lock_guard held(lock_);
  std::uint64_t id = state_.applied();  // beyond it, something may not have arrived
  for (const Log& log : logs_) {
    for (std::size_t i = 0; i < log.whole.size(); ++i) {
      if (log.whole[i].position < log.passed_until) continue;
      id = std::min(id, log.whole[i].id - 1);
      break;
    }
  }
  return id;
}

std::uint64_t ReceiveLogs::not_passed() const {
  const std::lock_guard held(lock_);
  std::uint64_t requests = 0;
  for (const Log& log : logs_) requests += log.received - log.passed_until;
  return kept_ ? requests : 0;
}

// --- applying ------------------------------------------------------------------------------------

bool ReceiveLogs::is_checkpoint_due(std::uint64_t requests) const {
  const std::lock_guard held(lock_);
  if (ready_ == 0) return false;
  if (since_checkpoint_ >= requests) return true;
  return std::any_of(logs_.begin(), logs_.end(), [&](const Log& log) {
    return log.received + log.part - log.applied_until >= shape().slots / 2;
  });
}

ReceiveLogs::Log* ReceiveLogs::log_with(std::uint64_t id) {
  const auto found = std::find_if(logs_.begin(), logs_.end(), [&](const Log& log) {
    return log.applied < log.whole.size() && log.whole[log.applied].id == id;
  });
  return found == logs_.end() ? nullptr : &*found;
}

ReceiveLogs::Log* ReceiveLogs::log_with_least_id() {
  Log* least = nullptr;
  for (Log& log : logs_) {
    if (log.applied == log.whole.size()) continue;
    if (least == nullptr || log.whole[log.applied].id < least->whole[least->applied].id) {
      least = &log;
    }
  }
  return least;
}

std::optional<ReceiveLogs::InLog> ReceiveLogs::take_next(std::uint64_t last, bool over_gaps,
                                                         std::uint64_t until_id) {
  const std::lock_guard held(lock_);
  Log* const log = over_gaps ? log_with_least_id() : log_with(last + 1);
  if (log == nullptr || log->whole[log->applied].last_id() > until_id) return std::nullopt;
  --ready_;
  return InLog{static_cast<std::uint32_t>(log - logs_.data()), log->whole[log->applied++]};
}

std::vector<ReceiveLogs::InLog> ReceiveLogs::whole_after(std::uint64_t last) const {
  std::vector<InLog> next;
  const std::lock_guard held(lock_);
  std::vector<std::size_t> taken(logs_.size());
  for (bool found = true; found;) {
    found = false;
    for (std::uint32_t number = 0; number < logs_.size(); ++number) {
      const Log& log = logs_[number];
      const std::size_t next_whole = log.applied + taken[number];
      if (next_whole == log.whole.size() || log.whole[next_whole].id != last + 1) continue;
      next.push_back({number, log.whole[next_whole]});
      last = log.whole[next_whole].last_id();
      ++taken[number];
      found = true;
    }
  }
  return next;
}

void ReceiveLogs::read_data(std::uint32_t log, std::uint64_t position,
                            std::span<std::byte> into) const {
  region_.read(shape().slot_offset(log, position) + sizeof(RequestHeader), into);
}

void ReceiveLogs::note_applied(std::span<const std::uint64_t> until) {
  const std::lock_guard held(lock_);
  since_checkpoint_ = 0;
  for (std::size_t number = 0; number < logs_.size(); ++number) {
    Log& log = logs_[number];
    set_applied_until(log, log.applied == log.whole.size()
                               ? log.received
                               : std::max(log.applied_until, until[number]));
    if (!kept_) log.passed_until = log.applied_until;
    drop_done(log);
  }
}

void ReceiveLogs::drop_done(Log& log) {
  while (log.applied > 0 && (!kept_ || log.whole.front().end() <= log.passed_until)) {
    log.whole.pop_front();
    --log.applied;
  }
}

void ReceiveLogs::forget_not_applied(std::uint64_t id) {
  const std::lock_guard held(lock_);
  for (Log& log : logs_) forget_not_applied(log, id);
}

void ReceiveLogs::forget_not_applied(Log& log, std::uint64_t id) {
  while (log.applied < log.whole.size() && log.whole[log.applied].last_id() <= id) {
    log.whole.take(log.applied);
    --ready_;
  }
  if (log.applied == log.whole.size()) {
    log.part = 0;
    log.last_id = std::max(state_.applied(), log.last_id <= id ? std::uint64_t{0} : log.last_id);
    set_applied_until(log, log.received);
    if (log.whole.empty()) log.passed_until = log.received;
  } else {
    set_applied_until(log, log.whole[log.applied].position);
    if (log.applied == 0) log.passed_until = log.applied_until;
  }
}

bool ReceiveLogs::is_applied(std::uint32_t log) const {
  const std::lock_guard held(lock_);
  return logs_[log].applied_until == logs_[log].received + logs_[log].part;
}

// --- a data area on a disk -----------------------------------------------------------------------

void ReceiveLogs::keep_until_saved(bool keep) {
  const std::lock_guard held(lock_);
  kept_until_saved_ = keep;
}

std::vector<std::uint64_t> ReceiveLogs::applied_until() const {
  std::vector<std::uint64_t> positions;
  const std::lock_guard held(lock_);
  for (const Log& log : logs_) positions.push_back(log.applied_until);
  return positions;
}

void ReceiveLogs::note_saved(std::span<const std::uint64_t> applied_until) {
  const std::lock_guard held(lock_);
  for (std::size_t number = 0; number < logs_.size(); ++number) {
    logs_[number].saved_until = std::max(logs_[number].saved_until, applied_until[number]);
  }
}

bool ReceiveLogs::wants_save(std::uint32_t log) const {
  const std::lock_guard held(lock_);
  return logs_[log].saved_until < logs_[log].applied_until;
}

ReceiveLogs::Counts ReceiveLogs::counts() const {
  const std::lock_guard held(lock_);
  return counts_;
}

}  // namespace perdura::systems::mojim
