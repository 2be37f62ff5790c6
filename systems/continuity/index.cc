#include "systems/continuity/index.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "platform/base/error.h"

namespace perdura::systems::continuity {

Index::Index(pmem::Region& region, Bytes offset, const Geometry& geometry, Flushing flushing,
             Readers readers)
    : region_(region),
      offset_(offset),
      geometry_(geometry),
      flushing_(flushing),
      readers_(readers) {
  for (std::uint32_t level = 0; level <= geometry.resizes; ++level) {
    tables_[level] = geometry.table(level);
    groups_[level].reset(tables_[level].groups);
  }
  set_state({});
}

void Index::set_state(State state) {
  state_.store(state, std::memory_order_relaxed);
  const Table& used = table();
  slots_.store(used.pairs * used.own_slots() + used.groups * used.shared_slots(),
               std::memory_order_relaxed);
}

void Index::store_word(Bytes offset, std::uint64_t value) {
  region_.store(offset_ + offset, value);
}

void Index::persist(Bytes offset, Bytes length) {
  if (flushing_ == Flushing::lines) region_.flush(offset_ + offset, length);
  region_.drain();
}

// --- finding -------------------------------------------------------------------------------------

// One access to the header's line yields all words of it that are needed.
inline Index::Lookup Index::look_up(const Table& table, Home home, const KeyWords& key,
                                    Fingerprint fingerprint) const {
  const Bytes pair = offset_ + table.pair_offset(home.pair);
  // Prefetches, in parallel with the header, the bucket, which holds most items, and the first line
  // of the SBuckets, which holds most of the others.
  const Bytes bucket = pair + (home.odd ? table.pair_size() - kBucketSize : 0);
  region_.prefetch(bucket);
  region_.prefetch(bucket + kCacheLine);
  region_.prefetch(pair + kBucketSize + kHeaderSize);
  const Indicator searched = table.home_bits[home.odd];
  const Header header = region_.load_words<kHeaderWords>(
      pair + kBucketSize, [searched](std::size_t word, const Header& before) {
        if (word == kIndicatorOffset / kWord) return true;
        if (word < kFingerprintsOffset / kWord) return false;
        const Indicator occupied = before[kIndicatorOffset / kWord] & searched;
        return (occupied >> (word * kWord - kFingerprintsOffset) & 0xFF) != 0;
      });
  const Indicator indicator = header[kIndicatorOffset / kWord];
  Indicator bits = with_this_fingerprint(header, fingerprint) & indicator & searched;
  for (; bits != 0; bits &= bits - 1) {
    const auto slot = static_cast<SlotNumber>(std::countr_zero(bits));
    const SlotWords item = load_item(table, home.pair, slot, indicator);
    if (KeyWords::of(item).same(key)) return {indicator, slot, slot_of(item)};
  }
  return {indicator, 0, std::nullopt};
}

std::optional<Slot> Index::find(const Slot& key) const {
  const KeyWords wanted = KeyWords::of(key);
  const std::uint64_t hash = hash_of(key);
  const State state = this->state();
  for (std::uint32_t level = state.level;; ++level) {
    const Table& used = tables_[level];
    const Lookup lookup = look_up(used, used.home(hash), wanted, fingerprint_of(hash));
    if (lookup.item) return lookup.item;
    if (level == last_level(state)) return std::nullopt;
  }
}

std::optional<SlotNumber> Index::room_in(std::uint32_t level, Home home, Indicator& indicator) {
  const Table& used = tables_[level];
  const std::optional<SlotNumber> slot = used.free_slot(home.odd, indicator);
  if (slot || group_of(indicator)) return slot;
  const std::optional<std::uint64_t> group = groups_[level].take();
  if (!group) return std::nullopt;
  added_groups_.fetch_add(1, std::memory_order_relaxed);
  indicator = with_group(indicator, *group);
  return used.own_slots();
}

// --- changing ------------------------------------------------------------------------------------

kv::Result<void> Index::put(const Slot& item) {
  for (;;) {
    switch (try_put(item)) {
      case Outcome::done:
        return {};
      case Outcome::out_of_space:
        return tl::unexpected(kv::Error::out_of_space);
      case Outcome::must_resize:
        begin_resize();
        while (resize_step()) {
        }
    }
  }
}

// The counter is incremented before the table is changed: an atomic addition waits for all earlier
// stores, which afterwards would include one to a line that has just been flushed.
Index::Outcome Index::try_put(const Slot& item, std::uint64_t hash) {
  const Table& used = table();
  const Home home = used.home(hash);
  const Fingerprint fingerprint = fingerprint_of(hash);
  const Lookup old = look_up(used, home, KeyWords::of(item), fingerprint);
  Indicator indicator = old.indicator;
  const std::optional<SlotNumber> room = room_in(level(), home, indicator);
  if (!room) {
    return level() < geometry_.resizes ? Outcome::must_resize : Outcome::out_of_space;
  }
  const SlotAddress address{&used, home.pair, *room, fingerprint};
  if (old.item) {
    update_item(address, old.slot, indicator, *old.item, item);
  } else {
    items_.fetch_add(1, std::memory_order_relaxed);
    insert_item(address, indicator, item);
  }
  return Outcome::done;
}

kv::Result<void> Index::erase(const Slot& key) { return erase(key, hash_of(key)); }

kv::Result<void> Index::erase(const Slot& key, std::uint64_t hash) {
  const Table& used = table();
  const Home home = used.home(hash);
  const Lookup old = look_up(used, home, KeyWords::of(key), fingerprint_of(hash));
  if (!old.item) return tl::unexpected(kv::Error::not_found);
  items_.fetch_sub(1, std::memory_order_relaxed);
  change_indicator({&used, home.pair, old.slot, 0}, old.indicator & ~bit_of(old.slot),
                   std::array{toggle(old.slot, *old.item)});
  return {};
}

void Index::insert_item(SlotAddress address, Indicator indicator, const Slot& item) {
  write_item(address, indicator, item);
  persist_item(address, indicator);
  change_indicator(address, indicator | bit_of(address.slot),
                   std::array{toggle(address.slot, item)});
}

void Index::update_item(SlotAddress to, SlotNumber from, Indicator indicator, const Slot& old_item,
                        const Slot& item) {
  write_item(to, indicator, item);
  persist_item(to, indicator);
  change_indicator(to, (indicator | bit_of(to.slot)) & ~bit_of(from),
                   std::array{toggle(to.slot, item), toggle(from, old_item)});
}

void Index::write_item(SlotAddress address, Indicator indicator, const Slot& item) {
  region_.write_object(offset_ + address.table->slot_offset(address.pair, address.slot, indicator),
                       item);
  const Bytes at = address.table->header_offset(address.pair) + kFingerprintsOffset +
                   address.slot / kWord * kWord;
  store_word(at, with_fingerprint(region_.load(offset_ + at), address.slot, address.fingerprint));
}

void Index::persist_item(SlotAddress address, Indicator indicator) {
  persist(address.table->slot_offset(address.pair, address.slot, indicator), kSlotSize);
}

// The checks are updated last. Until then a reader finds a mismatch and reads again, so that no
// client sees a change that is not durable yet.
void Index::change_indicator(SlotAddress pair, Indicator after, std::span<const Toggle> toggles) {
  const Indicator before = load_indicator(*pair.table, pair.pair);
  store_indicator(pair, after);
  persist_indicator(pair);
  if (has_readers()) store_checks(pair, before, after, toggles);
}

void Index::store_checks(SlotAddress pair, Indicator before, Indicator after,
                         std::span<const Toggle> toggles) {
  const Table& used = *pair.table;
  const Bytes header = used.header_offset(pair.pair);
  const std::uint64_t terms = check_term(before) ^ check_term(after);
  // Branch-free, since whether a slot is covered is unpredictable.
  const auto check_after = [&](std::uint64_t check, Indicator covered, std::uint64_t change) {
    for (const Toggle& one : toggles) check ^= one.term & (0 - (covered >> one.slot & 1));
    return check ^ change;
  };
  std::array<std::uint64_t, 2> old_checks{};
  std::array<std::uint64_t, 2> checks{};
  for (const bool odd : {false, true}) {
    const Bytes at = header + check_offset(odd);
    old_checks[odd] = region_.load(offset_ + at);
    checks[odd] = check_after(old_checks[odd], used.segment_bits(odd), terms);
    store_word(at, checks[odd]);
  }
  if (const auto group = group_of(after)) {
    const Bytes at = used.group_offset(*group);
    const std::uint64_t old_term = check_term(old_checks);
    // A group that the pair has just been given is empty.
    const std::uint64_t check = group_of(before) ? region_.load(offset_ + at) : old_term;
    store_word(at, check_after(check, used.group_bits(), old_term ^ check_term(checks)));
  }
}

// --- resizing ------------------------------------------------------------------------------------

void Index::begin_resize() {
  const State resizing{level(), true};
  store_word(kStateOffset, resizing.word());
  persist(kStateOffset, kWord);
  set_state(resizing);
  next_pair_ = 0;
}

bool Index::resize_step() {
  const Table& old = table();
  if (next_pair_ == old.pairs) {
    const State resized{level() + 1, false};
    store_word(kStateOffset, resized.word());
    persist(kStateOffset, kWord);
    set_state(resized);
    ++resizes_;
    return false;
  }
  const std::uint64_t pair = next_pair_++;
  // A client that finds nothing in a sealed pair looks in the next table. The seal need not be
  // durable: it is for readers only, which do not outlive the server, and recovery sets it again.
  const SlotAddress address{&old, pair, 0, 0};
  change_indicator(address, load_indicator(old, pair) | kSealed, {});
  for_each_in(old, pair, [&](SlotNumber slot, const Slot& item) {
    move_item({&old, pair, slot, 0}, item);
  });
  return true;
}

void Index::move_item(SlotAddress from, const Slot& item) {
  insert_moved(item);
  delete_moved(from, item);
}

// There is always room. All items of a new pair come from one pair of the old table and keep their
// parity. So a new pair needs a group only if the old one had one, and at most one of the two new
// pairs does. Buckets are filled before SBuckets, so that no slot of a bucket is wasted.
void Index::insert_moved(const Slot& item) {
  const std::uint32_t level = this->level() + 1;
  const Table& next = tables_[level];
  const std::uint64_t hash = hash_of(item);
  const Home home = next.home(hash);
  Indicator indicator = load_indicator(next, home.pair);
  const std::optional<SlotNumber> room = room_in(level, home, indicator);
  insert_item({&next, home.pair, room.value(), fingerprint_of(hash)}, indicator, item);
}

void Index::delete_moved(SlotAddress from, const Slot& item) {
  change_indicator(from, load_indicator(*from.table, from.pair) & ~bit_of(from.slot),
                   std::array{toggle(from.slot, item)});
}

// --- recovery ------------------------------------------------------------------------------------

void Index::recover() {
  const State state = State::from(region_.load(offset_ + kStateOffset));
  if (state.level + (state.resizing ? 1 : 0) > geometry_.resizes) {
    throw UsageError(
        fmt::format("the hash table of pool '{}' is damaged: it was resized {} times; "
                    "remove the pool",
                    region_.name(), state.level));
  }
  set_state(state);
  items_.store(0, std::memory_order_relaxed);
  for (std::uint32_t level = this->level(); level <= last_level(state); ++level)
    recover_table(level);
  if (!state.resizing) return;
  ++recovered_.resizes;
  delete_first_if_moved();
  next_pair_ = 0;
  while (resize_step()) {
  }
}

void Index::recover_table(std::uint32_t level) {
  const Table& used = tables_[level];
  std::vector<bool> taken(used.groups);
  std::uint64_t items = 0;
  for (std::uint64_t pair = 0; pair < used.pairs; ++pair) {
    const Indicator indicator = load_indicator(used, pair);
    const auto group = group_of(indicator);
    if ((group && *group >= used.groups) || (!group && (indicator & used.group_bits()) != 0)) {
      throw UsageError(fmt::format(
          "the hash table of pool '{}' is damaged at segment pair {}: it has SBuckets that do not "
          "exist; remove the pool",
          region_.name(), pair));
    }
    if (group) taken[*group] = true;
    items += static_cast<std::uint64_t>(std::popcount(indicator & used.all_bits()));
    recover_checks(used, pair, indicator);
  }
  groups_[level].recover(taken);
  items_.fetch_add(items, std::memory_order_relaxed);
}

// Corrects every check and fingerprint that a crash left stale.
void Index::recover_checks(const Table& table, std::uint64_t pair, Indicator indicator) {
  std::array<std::uint64_t, 2> checks{check_term(indicator), check_term(indicator)};
  std::uint64_t group_check = 0;
  FingerprintWords fingerprints{};
  for_each_in(table, pair, [&](SlotNumber slot, const Slot& item) {
    const std::uint64_t term = check_term(slot, item);
    std::uint64_t& word = fingerprints[slot / kWord];
    word = with_fingerprint(word, slot, fingerprint_of(hash_of(item)));
    for (const bool odd : {false, true}) {
      if ((table.segment_bits(odd) & bit_of(slot)) != 0) checks[odd] ^= term;
    }
    if ((table.group_bits() & bit_of(slot)) != 0) group_check ^= term;
  });
  const auto correct = [&](Bytes offset, std::uint64_t check) {
    if (region_.load(offset_ + offset) != check) store_word(offset, check);
  };
  for (const bool odd : {false, true}) {
    correct(table.header_offset(pair) + check_offset(odd), checks[odd]);
  }
  for (std::uint32_t i = 0; i < kFingerprintWords; ++i) {
    correct(table.header_offset(pair) + kFingerprintsOffset + i * kWord, fingerprints[i]);
  }
  if (const auto group = group_of(indicator))
    correct(table.group_offset(*group), group_check ^ check_term(checks));
}

// Items move in the order of pairs and slots, and each is deleted from the old table before the
// next is inserted. So only the old table's first item can be in both tables.
void Index::delete_first_if_moved() {
  const Table& old = table();
  const Table& next = tables_[level() + 1];
  for (std::uint64_t pair = 0; pair < old.pairs; ++pair) {
    const Indicator bits = load_indicator(old, pair) & old.all_bits();
    if (bits == 0) continue;
    const auto slot = static_cast<SlotNumber>(std::countr_zero(bits));
    const Slot item = read_item(old, pair, slot, load_indicator(old, pair));
    const std::uint64_t hash = hash_of(item);
    if (look_up(next, next.home(hash), KeyWords::of(item), fingerprint_of(hash)).item) {
      ++recovered_.movements;
      delete_moved({&old, pair, slot, 0}, item);
      items_.fetch_sub(1, std::memory_order_relaxed);
    }
    return;
  }
}

}  // namespace perdura::systems::continuity
