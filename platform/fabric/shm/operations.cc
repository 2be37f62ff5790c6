// Execution of operations on the peer's memory.
#include <fmt/core.h>
#include <immintrin.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "platform/fabric/shm/endpoint.h"
#include "platform/fabric/shm/queue_pair.h"
#include "platform/pmem/instructions.h"
#include "platform/pmem/word_copy.h"

namespace perdura::fabric::shm {
namespace {

using pmem::Cause;
using pmem::Medium;

constexpr Bytes kPrefetched = 16 * kCacheLine;  // as many as a processor fetches at the same time

// Counts how many bytes are written to persistent memory, not how many of them change.
void count_issued(std::span<const std::byte> target, Bytes region_offset) {
  pmem::WriteMeter& meter = pmem::thread_write_meter();
  meter.bytes(Cause::one_sided, {}, target);
  meter.lines_written(Cause::one_sided, region_offset, target.size());
}

// The initiator's thread counts the bytes that its operations write to persistent memory, at both
// ends.
void place(std::byte* target, Medium medium, Bytes region_offset, const Payload& data) {
  if (data.empty()) return;
  if (medium == Medium::pm && data.is_one()) {
    pmem::WriteMeter& meter = pmem::thread_write_meter();
    pmem::count_write(meter, Cause::one_sided, target, data.first());
    meter.lines_written(Cause::one_sided, region_offset, data.size());
  } else if (medium == Medium::pm) {
    count_issued({target, data.size()}, region_offset);  // compared in one piece only (payload_of)
  }
  if (data.is_one()) return pmem::copy_to_shared(target, data.first());
  for (const auto& piece : data.pieces()) {
    pmem::copy_between_shared(target, piece);
    target += piece.size();
  }
}

void count_word(const RemoteRange& range, Bytes offset, std::uint64_t before, std::uint64_t after) {
  if (range.medium != Medium::pm) return;
  pmem::WriteMeter& meter = pmem::thread_write_meter();
  meter.word(Cause::one_sided, before, after, pmem::kWholeWord);
  meter.lines_written(Cause::one_sided, range.region_offset + offset, kWord);
}

// The word with the size of a registration to which peers may append; null for any other.
std::byte* size_word_of(const RemoteRange& range) {
  if (range.appends == nullptr) return nullptr;
  const std::uint64_t word = range.appends->size_word.load(std::memory_order_acquire);
  return word == 0 ? nullptr : range.base + (word - 1);
}

// The ranges of a registration that are to be committed, for add_dirty(); its lock must be held.
class SharedRanges {
 public:
  explicit SharedRanges(SharedDirty& shared) : shared_(shared) {}

  std::size_t size() const {
    return std::min<std::size_t>(shared_.count.load(std::memory_order_acquire), kDirtyRanges);
  }
  DirtyRange at(std::size_t i) const {
    const SharedDirty::Range& range = shared_.ranges[i];
    return {range.begin.load(std::memory_order_acquire), range.end.load(std::memory_order_acquire)};
  }
  void put(std::size_t i, const DirtyRange& range) {
    shared_.ranges[i].begin.store(range.begin, std::memory_order_release);
    shared_.ranges[i].end.store(range.end, std::memory_order_release);
  }
  void add_last(const DirtyRange& range) {
    const std::size_t last = size();
    put(last, range);
    shared_.count.store(last + 1, std::memory_order_release);
  }
  void drop_last() { shared_.count.store(size() - 1, std::memory_order_release); }
  void clear() { shared_.count.store(0, std::memory_order_release); }
  std::vector<DirtyRange> all() const {
    std::vector<DirtyRange> ranges;
    for (std::size_t i = 0; i < size(); ++i) ranges.push_back(at(i));
    return ranges;
  }

 private:
  SharedDirty& shared_;
};

// Distributes the data over the pieces of local memory.
void scatter(const LocalPieces& pieces, std::span<const std::byte> data) {
  for (const LocalBuffer& piece : pieces.all()) {
    const auto part = data.first(piece.length);
    if (!part.empty()) {
      place(checked_bytes(piece).data(), piece.region->medium(), piece.offset, part);
    }
    data = data.subspan(piece.length);
  }
}

}  // namespace

std::span<std::byte> checked_bytes(const LocalBuffer& buffer) {
  if (buffer.length == 0) return {};
  if (buffer.region == nullptr || buffer.offset > buffer.region->size() ||
      buffer.length > buffer.region->size() - buffer.offset) [[unlikely]] {
    fmt::print(stderr, "perdura: a local buffer of {} bytes at {} is outside its region\n",
               buffer.length, buffer.offset);
    std::abort();
  }
  return buffer.bytes();
}

// Null if the operation is to be refused; otherwise `touched_` holds the pieces that it touches.
const RemoteRange* ShmQueuePair::resolve(RemoteAddress address, Bytes length, Access needed) {
  const RemoteRange* range = remote_.memory->find(address.key.value);
  if (range == nullptr || !allows(range->access, needed)) return nullptr;
  if (range->extents == nullptr) [[likely]] {
    if (!range->holds(address.offset, length)) return nullptr;
    whole_ = {address.offset, length, 0};
    touched_ = {&whole_, 1};
    return range;
  }
  if (!find_published(remote_.memory->node().segment(), *range->extents, address.offset, length,
                      pieces_, table_)) {
    return nullptr;
  }
  touched_ = pieces_;
  return range;
}

// True if the table of extents has not changed since resolve() read it.
bool ShmQueuePair::holds_still(const RemoteRange& range) const {
  std::atomic_thread_fence(std::memory_order_acquire);
  return range.extents->load(std::memory_order_relaxed) == table_;
}

Payload ShmQueuePair::payload_of(const WorkRequest& request) {
  Payload payload;
  if (request.opcode == Opcode::read) return payload;
  for (const LocalBuffer& piece : request.local.all()) payload.append(checked_bytes(piece));
  if (payload.is_one() || pmem::thread_write_meter().level() == pmem::WriteMeter::Level::issued)
      [[likely]] {
    return payload;
  }
  // The new data is compared with the old contents in one piece.
  gathered_.resize(payload.size());
  auto to = std::span(gathered_);
  for (const auto& piece : payload.pieces()) {
    pmem::copy_from_shared(to.first(piece.size()), piece.data());
    to = to.subspan(piece.size());
  }
  return Payload(gathered_);
}

// Every operation that changes the peer's memory announces itself in `changing` before it checks
// that the peer is still there. A process that takes the peer's place first closes the connection
// and then waits until the announced operations have ended (Job::declare_dead). So nothing is
// written to memory that the new process uses, however long this thread goes without a core.
ShmQueuePair::Outcome ShmQueuePair::execute(const WorkRequest& request, const Payload& payload) {
  const bool changes = request.opcode != Opcode::read && request.opcode != Opcode::flush;
  Word& changing = remote_slot().changing;
  if (changes) changing.store(endpoint_.life_, std::memory_order_seq_cst);
  const Outcome outcome = perform(request, payload);
  if (changes) changing.store(0, std::memory_order_release);
  if (outcome.status == Status::success) traffic_.count(request);
  return outcome;
}

ShmQueuePair::Outcome ShmQueuePair::perform(const WorkRequest& request, const Payload& payload) {
  // The peer is gone, or another process has taken its place.
  if (!is_connected(remote_slot().state.load(std::memory_order_seq_cst))) [[unlikely]] {
    return {Status::retry_exceeded, 0};
  }
  if ((request.flags.inlined && request.local.length() > kMaxInline) || !may_have_flags(request)) {
    return {Status::unsupported, 0};
  }
  if (request.local.length() > endpoint_.capabilities().max_message) {
    return {Status::message_too_long, 0};
  }
  switch (request.opcode) {
    case Opcode::read:
      return read(request);
    case Opcode::write:
      return write(request, payload);
    case Opcode::write_with_immediate:
    case Opcode::send:
      return deliver(request, payload);
    case Opcode::compare_and_swap:
    case Opcode::fetch_and_add:
    case Opcode::atomic_write:
      return changed(request, kWord, atomic(request));
    case Opcode::flush:
      return flush(request);
    case Opcode::append:
      return changed(request, payload.size(), append(request, payload));
    case Opcode::commit:
      return commit(request);
  }
  return {Status::unsupported, 0};
}

ShmQueuePair::Outcome ShmQueuePair::read(const WorkRequest& request) {
  const Bytes length = request.local.length();
  const RemoteRange* range = resolve(request.remote, length, Access::remote_read);
  if (range == nullptr) return {Status::remote_access_error, 0};
  const LocalBuffer& first = request.local.first();
  if (request.local.is_one() && range->extents == nullptr) [[likely]] {
    const std::byte* const from = range->base + request.remote.offset;
    if (length == 0 || first.region->medium() == Medium::dram) [[likely]] {
      pmem::copy_from_shared(checked_bytes(first), from);
      return {};
    }
    if (pmem::thread_write_meter().level() == pmem::WriteMeter::Level::issued) {
      count_issued(checked_bytes(first), first.offset);
      pmem::copy_between_shared(checked_bytes(first).data(), {from, length});
      return {};
    }
  }
  // A READ into this node's persistent memory counts as writes to it, and becomes visible word by
  // word. It is compared with the old contents in one piece. Data that was read through extents is
  // used only if the extents have not changed meanwhile.
  thread_local std::vector<std::byte> data;
  data.resize(length);
  for (;;) {
    auto to = std::span(data);
    for (const RegionPiece& piece : touched_) {
      pmem::copy_from_shared(to.first(piece.length), range->base + piece.offset);
      to = to.subspan(piece.length);
    }
    if (range->extents == nullptr || holds_still(*range)) break;
    range = resolve(request.remote, length, Access::remote_read);
    if (range == nullptr) return {Status::remote_access_error, 0};
  }
  scatter(request.local, data);
  return {};
}

void ShmQueuePair::place_pieces(const RemoteRange& range, const Payload& payload) const {
  const auto place_at = [&](const RegionPiece& piece, const Payload& part) {
    place(range.base + piece.offset, range.medium, range.region_offset + piece.offset, part);
  };
  if (touched_.size() == 1) [[likely]]
    return place_at(touched_.front(), payload);
  Bytes placed = 0;
  for (const RegionPiece& piece : touched_) {
    place_at(piece, payload.part(placed, piece.length));
    placed += piece.length;
  }
}

ShmQueuePair::Outcome ShmQueuePair::write(const WorkRequest& request, const Payload& payload) {
  const RemoteRange* range = resolve(request.remote, payload.size(), rights_for(request));
  if (range == nullptr) return {Status::remote_access_error, 0};
  if (request.flags.commit && range->dirty == nullptr) return {Status::unsupported, 0};
  place_pieces(*range, payload);
  if (range->dirty != nullptr) [[unlikely]]
    note_dirty(*range, request.remote.offset, payload.size());
  if (request.flags.commit) [[unlikely]]
    persist_dirty(*range);
  return {};
}

ShmQueuePair::Outcome ShmQueuePair::atomic(const WorkRequest& request) {
  const bool is_write = request.opcode == Opcode::atomic_write;
  const RemoteRange* range =
      resolve(request.remote, kWord, is_write ? Access::remote_write : Access::remote_atomic);
  if (range == nullptr || touched_.size() != 1) return {Status::remote_access_error, 0};
  const Bytes offset = touched_.front().offset;
  std::byte* const target = range->base + offset;
  if (reinterpret_cast<std::uintptr_t>(target) % kWord != 0) {
    return {Status::remote_access_error, 0};
  }
  const std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(target));
  switch (request.opcode) {
    case Opcode::compare_and_swap: {
      std::uint64_t old = request.expected;
      if (word.compare_exchange_strong(old, request.operand)) {
        count_word(*range, offset, old, request.operand);
      }
      return {Status::success, old};
    }
    case Opcode::fetch_and_add: {
      const std::uint64_t old = word.fetch_add(request.operand);
      count_word(*range, offset, old, old + request.operand);
      return {Status::success, old};
    }
    default: {
      const std::uint64_t old = word.exchange(request.operand);
      count_word(*range, offset, old, request.operand);
      return {};
    }
  }
}

ShmQueuePair::Outcome ShmQueuePair::flush(const WorkRequest& request) {
  const RemoteRange* range = resolve(request.remote, request.flush_length, Access::remote_flush);
  if (range == nullptr) return {Status::remote_access_error, 0};
  // Earlier WRITEs are visible already, since this thread made them itself. Only persistence takes
  // work.
  if (request.placement == Placement::persistence) {
    for (const RegionPiece& piece : touched_) {
      pmem::flush_lines(range->base + piece.offset, piece.length);
    }
    if (const std::byte* const size = size_word_of(*range)) pmem::flush_lines(size, kWord);
    pmem::drain();
  }
  return {};
}

// A thread that appends holds a lock of the registration from when it reads the size until it has
// stored the new one. If its process dies meanwhile, the size is as it was, and the next one takes
// the lock over and writes over the data. Another lock is for the ranges that are to be committed.
class ShmQueuePair::RegistrationLock {
 public:
  RegistrationLock(Word& holder, const ShmEndpoint& endpoint) : holder_(holder) {
    constexpr int kSpins = 64;
    constexpr int kTurnsUntilDeathIsLookedFor = 1024;
    for (int turn = 1;; ++turn) {
      std::uint64_t found = 0;
      for (int spin = 0; spin < kSpins; ++spin, found = 0) {
        if (holder_.compare_exchange_weak(found, endpoint.life_, std::memory_order_acquire)) return;
        if (found != 0) _mm_pause();
      }
      sched_yield();
      found = holder_.load(std::memory_order_relaxed);
      if (turn % kTurnsUntilDeathIsLookedFor == 0 && found != 0 && !endpoint.job_.lives(found) &&
          holder_.compare_exchange_strong(found, endpoint.life_, std::memory_order_acquire)) {
        return;
      }
    }
  }
  ~RegistrationLock() { holder_.store(0, std::memory_order_release); }
  RegistrationLock(const RegistrationLock&) = delete;
  RegistrationLock& operator=(const RegistrationLock&) = delete;

 private:
  Word& holder_;
};

ShmQueuePair::Outcome ShmQueuePair::append(const WorkRequest& request, const Payload& payload) {
  const RemoteRange* const range = remote_.memory->find(request.remote.key.value);
  std::byte* const place = range == nullptr ? nullptr : size_word_of(*range);
  if (place == nullptr || !allows(range->access, rights_for(request))) {
    return {Status::remote_access_error, 0};
  }
  const std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(place));
  const RegistrationLock lock(range->appends->appending, endpoint_);
  const Bytes size = word.load(std::memory_order_acquire);
  if (!find_published(remote_.memory->node().segment(), *range->extents, size, payload.size(),
                      pieces_, table_)) {
    ask_for_extents(*range->appends, size + payload.size());
    return {Status::receiver_not_ready, 0};
  }
  touched_ = pieces_;
  place_pieces(*range, payload);
  word.store(size + payload.size(), std::memory_order_release);
  count_word(*range, static_cast<Bytes>(place - range->base), size, size + payload.size());
  return {Status::success, size};
}

void ShmQueuePair::ask_for_extents(SharedAppends& appends, Bytes end) const {
  std::uint64_t asked = appends.asked.load(std::memory_order_relaxed);
  while (asked < end) {
    if (!appends.asked.compare_exchange_weak(asked, end, std::memory_order_seq_cst)) continue;
    endpoint_.job_.doorbell(appends.doorbell.load(std::memory_order_relaxed)).ring();
    return;
  }
}

// --- commits ---------------------------------------------------------------------------

// Notes what an APPEND or an atomic has changed, and commits it if the operation ends with that.
ShmQueuePair::Outcome ShmQueuePair::changed(const WorkRequest& request, Bytes length,
                                            Outcome outcome) {
  if (outcome.status != Status::success) return outcome;
  const RemoteRange* const range = remote_.memory->find(request.remote.key.value);
  if (range == nullptr || range->dirty == nullptr) {
    // Without a commit it does not matter that the registration is gone meanwhile.
    if (request.flags.commit) outcome.status = Status::remote_access_error;
    return outcome;
  }
  const bool appends = request.opcode == Opcode::append;
  note_dirty(*range, appends ? outcome.old_value : request.remote.offset, length);
  if (request.flags.commit) persist_dirty(*range);
  return outcome;
}

// Called after the change and before the operation completes: a commit at the same time either
// finds the change in memory, or leaves the note for the next commit.
void ShmQueuePair::note_dirty(const RemoteRange& range, Bytes at, Bytes length) const {
  const RegistrationLock lock(range.dirty->holder, endpoint_);
  SharedRanges ranges(*range.dirty);
  add_dirty(ranges, {at, at + length});
}

// Holds the lock until all of it is persistent: another commit may neither find that nothing is
// dirty before that is true, nor may the ranges be lost with this process.
void ShmQueuePair::persist_dirty(const RemoteRange& range) {
  const RegistrationLock lock(range.dirty->holder, endpoint_);
  SharedRanges ranges(*range.dirty);
  pieces_.clear();
  add_published(remote_.memory->node().segment(), *range.extents, ranges.all(), pieces_);
  for (const RegionPiece& piece : pieces_) {
    pmem::flush_lines(range.base + piece.offset, piece.length);
  }
  if (const std::byte* const size = size_word_of(range)) pmem::flush_lines(size, kWord);
  pmem::drain();
  ranges.clear();
}

ShmQueuePair::Outcome ShmQueuePair::commit(const WorkRequest& request) {
  const RemoteRange* const range = remote_.memory->find(request.remote.key.value);
  if (range == nullptr || !allows(range->access, rights_for(request))) {
    return {Status::remote_access_error, 0};
  }
  if (range->dirty == nullptr) return {Status::unsupported, 0};
  persist_dirty(*range);
  return {};
}

// --- messages --------------------------------------------------------------------------

Status ShmQueuePair::place_message(const BufferClaims::Claim& claim, const Payload& payload) {
  // False if the buffer's region was removed after the buffer was posted.
  const auto place_at = [&](const BufferClaims::Piece& piece, const Payload& part) {
    const RemoteRange* range = remote_.memory->find(piece.key);
    if (range == nullptr || !range->holds(piece.offset, part.size())) return false;
    place(range->base + piece.offset, range->medium, range->region_offset + piece.offset, part);
    return true;
  };
  std::size_t placed = 0;
  for (const BufferClaims::Piece& piece : claim.all()) {
    const std::size_t left = payload.size() - placed;
    if (left == 0) break;
    const bool is_whole = left == payload.size() && left <= piece.length;
    const bool done =
        is_whole ? place_at(piece, payload) : place_at(piece, payload.part(placed, piece.length));
    if (!done) return Status::remote_access_error;
    placed += std::min<std::size_t>(left, piece.length);
  }
  return Status::success;
}

// The first lines of the next buffer are in the receiver's cache, if it has read the buffer's
// previous contents. This processor fetches them while the initiator prepares its next message,
// which is expected to be long, since the last one was: for a short one the prefetch does not pay.
void ShmQueuePair::prefetch_upcoming() const {
  const auto piece = claims_.upcoming();
  if (!piece) return;
  const RemoteRange* range = remote_.memory->find(piece->key);
  if (range == nullptr || !range->holds(piece->offset, piece->length)) return;
  for (Bytes line = 0; line < std::min<Bytes>(piece->length, kPrefetched); line += kCacheLine) {
    pmem::prefetch_for_writing(range->base + piece->offset + line);
  }
}

// SEND and WRITE_WITH_IMM: places the data and reports it in the connection's ring.
ShmQueuePair::Outcome ShmQueuePair::deliver(const WorkRequest& request, const Payload& payload) {
  const bool is_send = request.opcode == Opcode::send;
  if (!is_send && resolve(request.remote, payload.size(), Access::remote_write) == nullptr) {
    return {Status::remote_access_error, 0};
  }
  const auto claim = claims_.claim();
  if (!claim) return {Status::receiver_not_ready, 0};

  Status status = Status::success;
  if (!is_send) {
    status = write(request, payload).status;
  } else if (payload.size() > claim->length()) {
    status = Status::message_too_long;
  } else {
    status = place_message(*claim, payload);
  }

  Message& message = out_[(out_next_ - 1) & out_mask_];
  message.ticket = claim->ticket;
  message.length = is_send && status == Status::success ? request.local.length() : 0;
  message.immediate = request.immediate;
  message.has_immediate = is_send ? 0 : 1;
  message.status = status;
  // The doorbell requires that the last access before ring() is a read-modify-write operation.
  if (out_is_watched_) {
    message.sequence.exchange(out_next_++, std::memory_order_seq_cst);
  } else {
    message.sequence.store(out_next_++, std::memory_order_release);
    peer_activity_->fetch_or(peer_activity_bit_, std::memory_order_seq_cst);
  }
  peer_doorbell_->ring();
  if (payload.size() > kPrefetched) prefetch_upcoming();
  return {status, 0};
}

}  // namespace perdura::fabric::shm
