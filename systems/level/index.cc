#include "systems/level/index.h"

#include <fmt/core.h>

#include <bit>

#include "platform/error.h"

namespace perdura::systems::level {

Index::Index(pmem::Region& region, Bytes offset, const Geometry& geometry, Flushing flushing)
    : region_(region), offset_(offset), geometry_(geometry), flushing_(flushing) {
  for (std::uint32_t number = 0; number < geometry.levels(); ++number) {
    levels_[number] = geometry.level(number);
  }
  set_state({});
}

void Index::set_state(State state) {
  state_ = state;
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

// Without a branch for which of both buckets has the item: nobody can predict that.
inline std::optional<Index::Place> Index::find_in(const Candidates& candidates, const KeyWords& key,
                                                  Tag tag) const {
  constexpr std::uint32_t kTokenBit = kTokenWidth - 1;
  Tokens matches = matching(candidates.tokens[0], tag) >> kTokenBit |
                   matching(candidates.tokens[1], tag) >> (kTokenBit - 1);
  for (; matches != 0; matches &= matches - 1) {
    const auto bit = static_cast<std::uint32_t>(std::countr_zero(matches));
    const Place place{bit % kTokenWidth == 0 ? candidates.buckets[0] : candidates.buckets[1],
                      bit / kTokenWidth};
    if (holds(place, key)) return place;
  }
  return std::nullopt;
}

// A bucket of the top level and the one of the bottom level with the same key have numbers of which
// one is twice the other, or one more.
inline std::optional<Index::Place> Index::locate(const KeyWords& key, const Hashes& hashes) const {
  const std::uint64_t first = top_.candidate(hashes, Side::first);
  const std::uint64_t second = top_.candidate(hashes, Side::second);
  auto found = find_in(candidates_in(top_, first, second), key, hashes.tag());
  if (!found) found = find_in(candidates_in(bottom_, first / 2, second / 2), key, hashes.tag());
  return found;
}

std::optional<Slot> Index::find(const Slot& key) const {
  const KeyWords wanted = KeyWords::of(key);
  const Hashes hashes = Hashes::of(wanted);
  auto found = locate(wanted, hashes);
  if (!found && state_.resizing) [[unlikely]] {
    found = locate_in_next_top(wanted, hashes);
  }
  if (!found) return std::nullopt;
  return load_slot(*found);
}

std::optional<Index::Place> Index::locate_in_next_top(const KeyWords& key,
                                                      const Hashes& hashes) const {
  const Level& level = next_top_level();
  return find_in(candidates_in(level, level.candidate(hashes, Side::first),
                               level.candidate(hashes, Side::second)),
                 key, hashes.tag());
}

std::optional<SlotNumber> Index::find_in_bucket(Bytes bucket, const KeyWords& key, Tag tag) const {
  for (Tokens matches = matching(load_tokens(bucket), tag); matches != 0; matches &= matches - 1) {
    const auto slot = static_cast<SlotNumber>(std::countr_zero(matches) / kTokenWidth);
    if (holds({bucket, slot}, key)) return slot;
  }
  return std::nullopt;
}

// --- room for an item ----------------------------------------------------------------------------

// In the emptier of both buckets.
std::optional<Index::Place> Index::room_in(const Candidates& candidates) {
  const bool other = count_items(candidates.tokens[1]) < count_items(candidates.tokens[0]);
  const auto slot = free_slot(candidates.tokens[other ? 1 : 0]);
  if (!slot) return std::nullopt;
  return Place{candidates.buckets[other ? 1 : 0], *slot};
}

std::optional<Index::Place> Index::make_room(const Hashes& key) {
  for (const Level* level : {&top_level(), &bottom_level()}) {
    for (const Side side : {Side::first, Side::second}) {
      const auto room = make_room_in(*level, level->candidate(key, side));
      if (room) return room;
    }
  }
  return std::nullopt;
}

// By moving an item of this full bucket to its other one.
std::optional<Index::Place> Index::make_room_in(const Level& level, std::uint64_t bucket) {
  const auto side = side_to_move_to(level, bucket);
  if (!side) return std::nullopt;
  for (SlotNumber slot = 0; slot < kBucketSlots; ++slot) {
    const Place from{level.bucket_offset(bucket), slot};
    const Slot item = load_slot(from);
    const Hashes hashes = Hashes::of(item);
    const Bytes other = level.candidate_offset(hashes, *side);
    const auto room = free_slot(load_tokens(other));
    if (!room) continue;
    move_item(from, {other, *room}, item, hashes.tag());
    return from;
  }
  return std::nullopt;
}

std::optional<Side> Index::side_to_move_to(const Level& level, std::uint64_t bucket) const {
  if (level.side_of(bucket) == Side::second) return std::nullopt;
  return Side::second;
}

// --- changing ------------------------------------------------------------------------------------

Result<void> Index::put(const Slot& item) {
  for (;;) {
    switch (try_put(item)) {
      case Outcome::done:
        return {};
      case Outcome::out_of_space:
        return tl::unexpected(Error::out_of_space);
      case Outcome::must_resize:
        begin_resize();
        while (resize_step()) {
        }
    }
  }
}

// The tokens of all candidates are loaded at once, so that what is in no cache is waited for once.
Index::Outcome Index::try_put(const Slot& item) {
  const KeyWords key = KeyWords::of(item);
  const Hashes hashes = Hashes::of(key);
  const std::uint64_t first = top_.candidate(hashes, Side::first);
  const std::uint64_t second = top_.candidate(hashes, Side::second);
  const Candidates in_top = candidates_in(top_, first, second);
  const Candidates in_bottom = candidates_in(bottom_, first / 2, second / 2);
  auto old = find_in(in_top, key, hashes.tag());
  if (!old) old = find_in(in_bottom, key, hashes.tag());
  if (old) {
    const Slot old_item = load_slot(*old);
    const auto free = free_slot(load_tokens(old->bucket));
    if (free) {
      update_item({old->bucket, *free}, old->slot, old_item, item, hashes.tag());
    } else {
      overwrite_item(*old, old_item, item);
    }
    return Outcome::done;
  }
  std::optional<Place> room = room_in(in_top);
  if (!room) room = room_in(in_bottom);
  if (!room) room = make_room(hashes);
  if (!room) {
    return state_.bottom < geometry_.resizes ? Outcome::must_resize : Outcome::out_of_space;
  }
  insert_item(*room, item, hashes.tag());
  items_.fetch_add(1, std::memory_order_relaxed);
  return Outcome::done;
}

Result<void> Index::erase(const Slot& key) {
  const KeyWords wanted = KeyWords::of(key);
  const auto found = locate(wanted, Hashes::of(wanted));
  if (!found) return tl::unexpected(Error::not_found);
  delete_item(*found, load_slot(*found));
  items_.fetch_sub(1, std::memory_order_relaxed);
  return {};
}

void Index::insert_item(Place place, const Slot& item, Tag tag) {
  write_item(place, item);
  persist_item(place);
  change_tokens(place.bucket, with_item(load_tokens(place.bucket), place.slot, tag),
                toggle(place.slot, item));
}

void Index::update_item(Place to, SlotNumber from, const Slot& old_item, const Slot& item,
                        Tag tag) {
  write_item(to, item);
  persist_item(to);
  const Tokens with_both = with_item(load_tokens(to.bucket), to.slot, tag);
  change_tokens(to.bucket, without_item(with_both, from),
                toggle(to.slot, item) ^ toggle(from, old_item));
}

void Index::overwrite_item(Place place, const Slot& old_item, const Slot& item) {
  const std::uint64_t check = load_check(place.bucket);
  log_item(place, item);
  write_item(place, item);
  persist_item(place);
  store_check(place.bucket, check ^ toggle(place.slot, old_item) ^ toggle(place.slot, item));
  clear_log();
}

void Index::delete_item(Place place, const Slot& item) {
  change_tokens(place.bucket, without_item(load_tokens(place.bucket), place.slot),
                toggle(place.slot, item));
}

void Index::move_item(Place from, Place to, const Slot& item, Tag tag) {
  Index::insert_item(to, item, tag);
  delete_item(from, item);
}

void Index::write_item(Place place, const Slot& item) {
  region_.write_object(offset_ + place.offset(), item);
}

void Index::persist_item(Place place) { persist(place.offset(), kSlotSize); }

// The check comes last: until then a reader finds it wrong and reads again, so that nobody sees a
// change that is not durable yet. It is loaded before the line is flushed, which may evict it.
void Index::change_tokens(Bytes bucket, Tokens after, std::uint64_t toggles) {
  const std::uint64_t check =
      load_check(bucket) ^ check_term(load_tokens(bucket)) ^ check_term(after) ^ toggles;
  store_tokens(bucket, after);
  persist_tokens(bucket);
  store_check(bucket, check);
}

// --- the log -------------------------------------------------------------------------------------

// The mark is not durable before the rest of the entry is.
void Index::log_item(Place place, const Slot& item) {
  write_log_entry(place, item);
  persist_log_entry();
  mark_log_entry(1);
}

void Index::clear_log() {
  mark_log_entry(0);
  log_position_ = (log_position_ + 1) % kLogEntries;
  store_word(kLogPositionOffset, log_position_);
  persist(kLogPositionOffset, kWord);
}

void Index::write_log_entry(Place place, const Slot& item) {
  const Bytes entry = log_entry_offset(log_position_);
  region_.write_object(offset_ + entry, item);
  store_word(entry + offsetof(LogEntry, place), place.offset());
}

void Index::persist_log_entry() {
  persist(log_entry_offset(log_position_), offsetof(LogEntry, mark));
}

void Index::mark_log_entry(std::uint64_t mark) {
  const Bytes at = log_entry_offset(log_position_) + offsetof(LogEntry, mark);
  store_word(at, mark);
  persist(at, kWord);
}

// --- resizing ------------------------------------------------------------------------------------

void Index::begin_resize() {
  store_state({state_.bottom, true});
  next_bucket_ = 0;
}

bool Index::resize_step() {
  if (next_bucket_ == bottom_level().buckets) {
    store_state({state_.bottom + 1, false});
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
  const Tokens before = load_tokens(bucket);
  const Tokens after = before | kSealed;
  const std::uint64_t check = load_check(bucket) ^ check_term(before) ^ check_term(after);
  store_tokens(bucket, after);
  store_check(bucket, check);
}

// There is always room: a bucket that descends from this one gets nothing but its items, of which
// there are not more than slots.
void Index::insert_descendants(std::uint64_t bucket) {
  const Level& level = bottom_level();
  const Side side = level.side_of(bucket);
  for_each_in(level.bucket_offset(bucket), [&](SlotNumber, const Slot& item) {
    const Hashes hashes = Hashes::of(item);
    const Bytes descendant = next_top_level().candidate_offset(hashes, side);
    const auto room = free_slot(load_tokens(descendant));
    Index::insert_item({descendant, room.value()}, item, hashes.tag());
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
