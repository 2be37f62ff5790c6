#include "systems/level/index.h"

#include <emmintrin.h>
#include <fmt/core.h>

#include <bit>
#include <mutex>

#include "platform/base/error.h"

namespace perdura::systems::level {

Index::Index(pmem::Region& region, Bytes offset, const Geometry& geometry, Flushing flushing,
             Readers readers)
    : region_(region),
      offset_(offset),
      geometry_(geometry),
      flushing_(flushing),
      readers_(readers),
      logs_(geometry.logs) {
  for (std::uint32_t number = 0; number < geometry.levels(); ++number) {
    levels_[number] = geometry.level(number);
  }
  set_state({});
}

void Index::set_state(State state) {
  state_.store(state, std::memory_order_relaxed);
  bottom_ = levels_[state.bottom];
  top_ = levels_[state.bottom + 1];
  slots_.store((bottom_level().buckets + top_level().buckets) * kBucketSlots,
               std::memory_order_relaxed);
}

void Index::store_state(State state) {
  store_word(kStateOffset, state.word());
  persist(kStateOffset, kWord);
  set_state(state);
}

void Index::persist(Bytes offset, Bytes length) {
  if (flushing_ == Flushing::lines) region_.flush(offset_ + offset, length);
  region_.drain();
}

// --- finding -------------------------------------------------------------------------------------

// For the two buckets of a key on one side, the number of the top level's is twice that of the
// bottom level's, or one more.
[[gnu::always_inline]] inline std::array<Bytes, 4> Index::candidate_offsets(
    const Hashes& key) const {
  const std::uint64_t first = top_.candidate(key, Side::first);
  const std::uint64_t second = top_.candidate(key, Side::second);
  return {top_.bucket_offset(first), top_.bucket_offset(second), bottom_.bucket_offset(first / 2),
          bottom_.bucket_offset(second / 2)};
}

std::array<std::uint64_t, 4> Index::candidates(const Hashes& key) const {
  std::array<std::uint64_t, 4> numbers = candidate_offsets(key);
  for (std::uint64_t& number : numbers) number = bucket_number(number);
  return numbers;
}

// Loads the tokens of all candidates in parallel, so that their cache misses overlap, and
// prefetches the items of the top level, where most items are.
[[gnu::always_inline]] inline Index::Candidates Index::load_candidates(const Hashes& key) const {
  Candidates candidates{candidate_offsets(key), {}};
  const auto& buckets = candidates.buckets;
  for (const Bytes in_top : {buckets[0], buckets[1]}) {
    region_.prefetch(offset_ + in_top + kCacheLine);
    region_.prefetch(offset_ + in_top + 2 * kCacheLine);
  }
  candidates.tokens = region_.load_each(
      std::array{offset_ + buckets[0] + kTokensOffset, offset_ + buckets[1] + kTokensOffset,
                 offset_ + buckets[2] + kTokensOffset, offset_ + buckets[3] + kTokensOffset});
  return candidates;
}

namespace {

// The slots of four buckets whose item has this tag; 4 bits for each bucket.
inline std::uint32_t matching_all(const std::array<Tokens, 4>& tokens, Tag tag) {
  const auto word = [&](std::size_t i) { return static_cast<long long>(tokens[i] & ~kSealed); };
  const __m128i wanted = _mm_set1_epi16(static_cast<short>(Tokens{0x8000} | tag));
  const __m128i top = _mm_cmpeq_epi16(_mm_set_epi64x(word(1), word(0)), wanted);
  const __m128i bottom = _mm_cmpeq_epi16(_mm_set_epi64x(word(3), word(2)), wanted);
  return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(top, bottom)));
}

}  // namespace

// Does not branch on which bucket has the item, since that is unpredictable.
inline std::optional<Index::LocatedItem> Index::find_in(const Candidates& candidates,
                                                        const KeyWords& key, Tag tag) const {
  for (std::uint32_t matches = matching_all(candidates.tokens, tag); matches != 0;
       matches &= matches - 1) {
    const auto bit = static_cast<std::uint32_t>(std::countr_zero(matches));
    const SlotAddress address{candidates.buckets[bit / kBucketSlots], bit % kBucketSlots};
    const SlotWords item = load_item(address);
    if (KeyWords::of(item).same(key)) return LocatedItem{address, slot_of(item)};
  }
  return std::nullopt;
}

std::optional<Slot> Index::find(const Slot& key) const {
  const KeyWords wanted = KeyWords::of(key);
  const Hashes hashes = Hashes::of(wanted);
  const auto found = find_in(load_candidates(hashes), wanted, hashes.tag());
  if (found) return found->item;
  if (resizing()) [[unlikely]]
    return find_in_next_top(wanted, hashes);
  return std::nullopt;
}

std::optional<Slot> Index::find_in_next_top(const KeyWords& key, const Hashes& hashes) const {
  for (const Side side : {Side::first, Side::second}) {
    const Bytes bucket = next_top_level().candidate_offset(hashes, side);
    const auto slot = find_in_bucket(bucket, key, hashes.tag());
    if (slot) return load_slot({bucket, *slot});
  }
  return std::nullopt;
}

std::optional<SlotNumber> Index::find_in_bucket(Bytes bucket, const KeyWords& key, Tag tag) const {
  for (Tokens matches = matching(load_tokens(bucket), tag); matches != 0; matches &= matches - 1) {
    const auto slot = static_cast<SlotNumber>(std::countr_zero(matches) / kTokenWidth);
    if (KeyWords::of(load_item({bucket, slot})).same(key)) return slot;
  }
  return std::nullopt;
}

// --- room for an item ----------------------------------------------------------------------------

// A free slot in the emptier of the two candidates of a level.
std::optional<Index::SlotAddress> Index::room_in(const Candidates& candidates, std::size_t level) {
  const bool other =
      count_items(candidates.tokens[level + 1]) < count_items(candidates.tokens[level]);
  const std::size_t emptier = level + (other ? 1 : 0);
  const auto slot = free_slot(candidates.tokens[emptier]);
  if (!slot) return std::nullopt;
  return SlotAddress{candidates.buckets[emptier], *slot};
}

Index::Room Index::make_room(const Hashes& key, Writer& writer) {
  for (const Level* level : {&top_level(), &bottom_level()}) {
    for (const Side side : {Side::first, Side::second}) {
      const Room room = make_room_in(*level, level->candidate(key, side), writer);
      if (room.address || room.busy) return room;
    }
  }
  return {};
}

// Makes room in a full bucket by moving one of its items to the item's other bucket, if that is the
// second one; never in the other direction, which readers would miss. A free slot in the other
// bucket is certain only once that bucket is locked. It is checked before as well, so that buckets
// that are full, as most are, need not be locked.
Index::Room Index::make_room_in(const Level& level, std::uint64_t bucket, Writer& writer) {
  if (level.side_of(bucket) == Side::second) return {};
  for (SlotNumber slot = 0; slot < kBucketSlots; ++slot) {
    const SlotAddress from{level.bucket_offset(bucket), slot};
    const Slot item = load_slot(from);
    const Hashes hashes = Hashes::of(item);
    const Bytes other = level.candidate_offset(hashes, Side::second);
    if (!free_slot(load_tokens(other))) continue;
    if (writer.held != nullptr && !writer.held->try_add(bucket_number(other))) {
      writer.busy = bucket_number(other);
      return {.busy = true};
    }
    const auto room = free_slot(load_tokens(other));
    if (!room) continue;
    movements_.fetch_add(1, std::memory_order_relaxed);
    move_item(from, {other, *room}, item, hashes.tag());
    return {.address = from};
  }
  return {};
}

// --- changing ------------------------------------------------------------------------------------

kv::Result<void> Index::put(const Slot& item) {
  const Hashes hashes = Hashes::of(item);
  for (Writer alone;;) {
    switch (try_put(item, hashes, alone)) {
      case Outcome::done:
        return {};
      case Outcome::out_of_space:
        return tl::unexpected(kv::Error::out_of_space);
      case Outcome::must_resize:
        begin_resize();
        while (resize_step()) {
        }
        break;
      case Outcome::busy:
        break;
    }
  }
}

// Counters are incremented before the table is changed: an atomic addition waits for all earlier
// stores, which afterwards would include one to a line that has just been flushed.
Index::Outcome Index::try_put(const Slot& item, const Hashes& hashes, Writer& writer) {
  const Candidates candidates = load_candidates(hashes);
  const auto old = find_in(candidates, KeyWords::of(item), hashes.tag());
  if (old) {
    const auto& [address, old_item] = *old;
    const auto free = free_slot(load_tokens(address.bucket));
    if (free) {
      update_item({address.bucket, *free}, address.slot, old_item, item, hashes.tag());
    } else {
      overwrites_.fetch_add(1, std::memory_order_relaxed);
      overwrite_item(address, old_item, item, writer.number % geometry_.logs);
    }
    return Outcome::done;
  }
  std::optional<SlotAddress> address = room_in(candidates, kInTop);
  if (!address) address = room_in(candidates, kInBottom);
  if (!address) {
    const Room room = make_room(hashes, writer);
    if (room.busy) return Outcome::busy;
    address = room.address;
  }
  if (!address) return bottom() < geometry_.resizes ? Outcome::must_resize : Outcome::out_of_space;
  items_.fetch_add(1, std::memory_order_relaxed);
  insert_item(*address, item, hashes.tag());
  return Outcome::done;
}

kv::Result<void> Index::erase(const Slot& key) { return erase(key, Hashes::of(key)); }

kv::Result<void> Index::erase(const Slot& key, const Hashes& hashes) {
  const auto found = find_in(load_candidates(hashes), KeyWords::of(key), hashes.tag());
  if (!found) return tl::unexpected(kv::Error::not_found);
  items_.fetch_sub(1, std::memory_order_relaxed);
  delete_item(found->address, found->item);
  return {};
}

void Index::insert_item(SlotAddress address, const Slot& item, Tag tag) {
  write_item(address, item);
  persist_item(address);
  change_tokens(address.bucket, with_item(load_tokens(address.bucket), address.slot, tag),
                toggle(address.slot, item));
}

void Index::update_item(SlotAddress to, SlotNumber from, const Slot& old_item, const Slot& item,
                        Tag tag) {
  write_item(to, item);
  persist_item(to);
  const Tokens with_both = with_item(load_tokens(to.bucket), to.slot, tag);
  change_tokens(to.bucket, without_item(with_both, from),
                toggle(to.slot, item) ^ toggle(from, old_item));
}

void Index::overwrite_item(SlotAddress address, const Slot& old_item, const Slot& item,
                           LogNumber log) {
  const std::scoped_lock lock(logs_[log].lock);
  const std::uint64_t check = load_check(address.bucket);
  log_item(address, item, log);
  write_item(address, item);
  persist_item(address);
  if (has_readers()) {
    store_check(address.bucket,
                check ^ toggle(address.slot, old_item) ^ toggle(address.slot, item));
  }
  clear_log(log);
}

void Index::delete_item(SlotAddress address, const Slot& item) {
  change_tokens(address.bucket, without_item(load_tokens(address.bucket), address.slot),
                toggle(address.slot, item));
}

void Index::move_item(SlotAddress from, SlotAddress to, const Slot& item, Tag tag) {
  insert_item(to, item, tag);
  delete_item(from, item);
}

void Index::write_item(SlotAddress address, const Slot& item) {
  region_.write_object(offset_ + address.offset(), item);
}

void Index::persist_item(SlotAddress address) { persist(address.offset(), kSlotSize); }

// The check is updated last. Until then a reader finds a mismatch and reads again, so that no
// client sees a change that is not durable yet. The old check is loaded before the line is flushed,
// since the flush may evict the line.
void Index::change_tokens(Bytes bucket, Tokens after, std::uint64_t toggles) {
  if (!has_readers()) {
    store_tokens(bucket, after);
    persist_tokens(bucket);
    return;
  }
  const std::uint64_t check =
      load_check(bucket) ^ check_term(load_tokens(bucket)) ^ check_term(after) ^ toggles;
  store_tokens(bucket, after);
  persist_tokens(bucket);
  store_check(bucket, check);
}

// --- the log -------------------------------------------------------------------------------------

// The mark is set only after the rest of the entry is durable.
void Index::log_item(SlotAddress address, const Slot& item, LogNumber log) {
  write_log_entry(address, item, log);
  persist_log_entry(log);
  mark_log_entry(1, log);
}

void Index::clear_log(LogNumber log) {
  mark_log_entry(0, log);
  std::uint64_t& position = logs_[log].position;
  position = (position + 1) % kLogEntries;
  store_word(log_position_offset(log), position);
  persist(log_position_offset(log), kWord);
}

void Index::write_log_entry(SlotAddress address, const Slot& item, LogNumber log) {
  const Bytes entry = log_entry_offset(log, logs_[log].position);
  region_.write_object(offset_ + entry, item);
  store_word(entry + offsetof(LogEntry, offset), address.offset());
}

void Index::persist_log_entry(LogNumber log) {
  persist(log_entry_offset(log, logs_[log].position), offsetof(LogEntry, mark));
}

void Index::mark_log_entry(std::uint64_t mark, LogNumber log) {
  const Bytes at = log_entry_offset(log, logs_[log].position) + offsetof(LogEntry, mark);
  store_word(at, mark);
  persist(at, kWord);
}

// --- resizing ------------------------------------------------------------------------------------

void Index::begin_resize() {
  store_state({bottom(), true});
  next_bucket_ = 0;
}

bool Index::resize_step() {
  if (next_bucket_ == bottom_level().buckets) {
    store_state({bottom() + 1, false});
    ++resizes_;
    return false;
  }
  rehash_bucket(next_bucket_++);
  return true;
}

void Index::rehash_bucket(std::uint64_t bucket) {
  const Bytes offset = bottom_level().bucket_offset(bucket);
  seal(offset);
  insert_descendants(bucket);
  delete_all(offset);
}

void Index::seal(Bytes bucket) {
  if (!has_readers()) return;
  const Tokens before = load_tokens(bucket);
  const Tokens after = before | kSealed;
  const std::uint64_t check = load_check(bucket) ^ check_term(before) ^ check_term(after);
  store_tokens(bucket, after);
  store_check(bucket, check);
}

// There is always room: a descendant of this bucket receives only items of this bucket, which are
// at most as many as a bucket has slots.
void Index::insert_descendants(std::uint64_t bucket) {
  const Level& level = bottom_level();
  const Side side = level.side_of(bucket);
  for_each_in(level.bucket_offset(bucket), [&](SlotNumber, const Slot& item) {
    const Hashes hashes = Hashes::of(item);
    const Bytes descendant = next_top_level().candidate_offset(hashes, side);
    const auto room = free_slot(load_tokens(descendant));
    insert_item({descendant, room.value()}, item, hashes.tag());
  });
}

void Index::delete_all(Bytes bucket) {
  const Tokens before = load_tokens(bucket);
  Tokens after = before;
  std::uint64_t toggles = 0;
  for_each_in(bucket, [&](SlotNumber slot, const Slot& item) {
    toggles ^= toggle(slot, item);
    after = without_item(after, slot);
  });
  if (after != before) change_tokens(bucket, after, toggles);
}

}  // namespace perdura::systems::level
