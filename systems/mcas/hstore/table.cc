#include "systems/mcas/hstore/table.h"

#include <algorithm>
#include <bit>

namespace perdura::systems::mcas::hstore {

namespace {

// How far from its home a free entry is looked for, in multiples of H. At the load factors at which
// a table grows, there is one much nearer.
constexpr std::uint64_t kReachesProbed = 16;
// Entries that a step of growing handles. Other tasks of the thread may run between steps.
constexpr EntryNumber kEntriesOfAStep = 256;

constexpr std::uint64_t bit(std::uint64_t distance) { return std::uint64_t{1} << distance; }

// The part of its entry that inserting an item writes.
struct NewItem {
  std::uint64_t state = 0;
  Field key;
  Field value;
};
static_assert(sizeof(NewItem) == 40);

}  // namespace

// --- entries -------------------------------------------------------------------------------------

std::uint32_t Table::distance_of(std::uint64_t hops) {
  return static_cast<std::uint32_t>(std::countr_zero(hops));
}

// The highest bit of an entry's number selects its segment, and the other bits its index there.
Bytes Table::offset_of(EntryNumber entry) const {
  const std::uint64_t first = shape_.first_segment;
  if (entry < first) return offsets_[0] + entry * sizeof(HstoreEntry);
  const auto segment = static_cast<std::uint32_t>(std::bit_width(entry >> std::countr_zero(first)));
  return offsets_[segment] + (entry - shape_.entries_of(segment)) * sizeof(HstoreEntry);
}

Item Table::item_at(EntryNumber entry) const {
  const Bytes offset = offset_of(entry);
  return {entry, offset, State(memory_.region().load(offset + offsetof(HstoreEntry, state)))};
}

void Table::store_hops(EntryNumber home, std::uint64_t hops) {
  memory_.store_durably(offset_of(home), hops);
}

void Table::free_entry(EntryNumber entry) {
  const Bytes state = offset_of(entry) + offsetof(HstoreEntry, state);
  memory_.region().store(state, 0);
  if (log_ != nullptr) memory_.flush({state, kWord});
}

void Table::begin(const TableChange& change) {
  if (log_ != nullptr) log_->begin(change);
}
void Table::finish(const TableChange& change) {
  if (log_ != nullptr) log_->finish(change);
}

// With a log the word is durable at once, since the log may then forget the change.
void Table::finish_by(Bytes offset, std::uint64_t word, const TableChange& change) {
  memory_.region().store(offset, word);
  memory_.flush({offset, kWord});
  if (log_ == nullptr) return;
  memory_.drain();
  log_->finish(change);
}

// --- opening -------------------------------------------------------------------------------------

void Table::create(Bytes segment) {
  const HstoreEntry empty;
  for (EntryNumber entry = 0; entry < shape_.first_segment; ++entry) {
    memory_.region().write_object(segment + entry * sizeof empty, empty);
  }
  TableRoot root;
  root.segments = 1;
  root.offsets[0] = segment;
  memory_.region().write_object(root_, root);
  memory_.flush({segment, shape_.first_segment * sizeof empty});
  memory_.persist({root_, sizeof root});
  offsets_ = root.offsets;
  segments_ = 1;
  entries_ = shape_.first_segment;
}

void Table::read_root() {
  const auto root = memory_.region().read_object<TableRoot>(root_);
  if (root.segments == 0 || root.segments > bounds_.segments) {
    throw DamagedPool("its table has an impossible number of segments");
  }
  offsets_ = root.offsets;
  segments_ = static_cast<std::uint32_t>(root.segments);
  entries_ = shape_.entries(segments_);
  for (std::uint32_t i = 0; bounds_.contains && i < segments_; ++i) {
    const ByteRange one = segment(i);
    bool possible = one.offset % sizeof(HstoreEntry) == 0 && bounds_.contains(one);
    for (std::uint32_t j = 0; j < i; ++j) {
      possible = possible && (one.end() <= offsets_[j] || segment(j).end() <= one.offset);
    }
    if (!possible) throw DamagedPool("a segment of its table lies where none can be");
  }
}

void Table::recover() {
  read_root();
  clear_stale();
  for (EntryNumber home = 0; home < entries_; ++home) {
    items_ += static_cast<std::uint64_t>(std::popcount(hops_of(home)));
  }
}

// A process that died leaves what is visible, not what is durable (docs/restart.md). So the lines
// that the change may have stored to are flushed before they decide anything.
bool Table::settle(const TableChange& last) {
  memory_.persist({root_, sizeof(TableRoot)});
  read_root();
  items_ = last.items;
  if (last.kind == TableChange::Kind::none) return true;
  if (last.home >= entries_) throw DamagedPool("its last change is of an entry that is not there");
  if (last.kind == TableChange::Kind::grow) {
    if (segments_ == last.before) return false;
    for (std::uint32_t i = 0; i < segments_; ++i) memory_.flush(segment(i));
    memory_.drain();
    clear_stale();
    return true;
  }
  const EntryNumber entry = entry_behind(last.home, last.distance);
  memory_.flush({offset_of(last.home), sizeof(HstoreEntry)});
  memory_.persist({offset_of(entry), sizeof(HstoreEntry)});
  if (last.kind == TableChange::Kind::update) return state_of(entry).which() != last.before;
  const bool is_there = (hops_of(last.home) & bit(last.distance)) != 0;
  if (is_there && last.kind == TableChange::Kind::insert) ++items_;
  if (!is_there && last.kind == TableChange::Kind::erase) --items_;
  if (!is_there || last.kind == TableChange::Kind::move) {
    const EntryNumber unused = is_there ? entry_behind(last.home, last.before) : entry;
    stale_entries_ += state_of(unused).used() ? 1 : 0;
    free_entry(unused);
  }
  return is_there != (last.kind == TableChange::Kind::erase);
}

// --- inserting -----------------------------------------------------------------------------------

std::optional<EntryNumber> Table::make_room(std::uint64_t hash) {
  const EntryNumber home = home_of(hash);
  std::optional<std::uint64_t> distance = free_distance(home);
  while (distance && *distance >= reach()) {
    const std::optional<std::uint64_t> nearer = move_into(entry_behind(home, *distance));
    if (!nearer) return std::nullopt;
    *distance -= *nearer;
  }
  if (!distance) return std::nullopt;
  return entry_behind(home, *distance);
}

std::optional<std::uint64_t> Table::free_distance(EntryNumber home) const {
  const std::uint64_t most = std::min(entries_, kReachesProbed * shape_.hops);
  for (std::uint64_t distance = 0; distance < most; ++distance) {
    if (!state_of(entry_behind(home, distance)).used()) return distance;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> Table::move_into(EntryNumber entry) {
  for (std::uint64_t to = reach() - 1; to > 0; --to) {
    const EntryNumber home = entry_behind(entry, entries_ - to);
    const std::uint64_t hops = hops_of(home);
    const std::uint64_t nearer = hops & (bit(to) - 1);
    if (nearer == 0) continue;
    const std::uint32_t from = distance_of(nearer);
    const Item item = item_at(entry_behind(home, from));
    const TableChange change{.kind = TableChange::Kind::move,
                             .home = home,
                             .distance = static_cast<std::uint32_t>(to),
                             .before = from,
                             .items = items_};
    begin(change);
    auto copy = memory_.region().read_object<HstoreEntry>(item.offset);
    copy.state = item.state.moved(static_cast<std::uint32_t>(to)).word();
    const auto bytes = std::as_bytes(std::span(&copy, 1)).subspan(offsetof(HstoreEntry, state));
    memory_.region().write(offset_of(entry) + offsetof(HstoreEntry, state), bytes);
    memory_.persist({offset_of(entry), sizeof(HstoreEntry)});
    store_hops(home, (hops & ~bit(from)) | bit(to));
    free_entry(item.entry);
    finish(change);
    ++moves_;
    return to - from;
  }
  return std::nullopt;
}

void Table::insert(EntryNumber entry, std::uint64_t hash, const Field& key,
                   std::uint32_t key_length, const Field& value, std::uint32_t value_length,
                   const Objects& objects) {
  const EntryNumber home = home_of(hash);
  const auto distance = static_cast<std::uint32_t>((entry - home) & (entries_ - 1));
  const TableChange change{.kind = TableChange::Kind::insert,
                           .home = home,
                           .distance = distance,
                           .items = items_,
                           .objects = objects};
  begin(change);
  const State state = State::created(short_hash(hash), distance, key_length, value_length);
  memory_.region().write_object(offset_of(entry) + offsetof(HstoreEntry, state),
                                NewItem{state.word(), key, value});
  // An item in its home's line becomes durable before the hops, which are stored later.
  const bool outside = objects != Objects{};
  if (outside || entry != home) memory_.persist({offset_of(entry), sizeof(HstoreEntry)});
  ++items_;
  finish_by(offset_of(home), hops_of(home) | bit(distance), change);
}

// --- changing ------------------------------------------------------------------------------------

void Table::update(const Item& item, const Field& value, std::uint32_t value_length,
                   const Objects& objects) {
  const TableChange change{.kind = TableChange::Kind::update,
                           .home = home_of(item),
                           .distance = item.state.distance(),
                           .before = item.state.which(),
                           .items = items_,
                           .objects = objects};
  begin(change);
  if (objects[0] != ByteRange{}) memory_.drain();
  const State after = item.state.updated(value_length);
  const Bytes field = item.offset + offsetof(HstoreEntry, values) + after.which() * sizeof(Field);
  memory_.region().write_object(field, value);
  finish_by(item.offset + offsetof(HstoreEntry, state), after.word(), change);
}

void Table::erase(const Item& item, const Objects& objects) {
  const std::uint32_t distance = item.state.distance();
  const EntryNumber home = home_of(item);
  const TableChange change{.kind = TableChange::Kind::erase,
                           .home = home,
                           .distance = distance,
                           .items = items_,
                           .objects = objects};
  begin(change);
  store_hops(home, hops_of(home) & ~bit(distance));
  free_entry(item.entry);
  --items_;
  finish(change);
}

// --- growing -------------------------------------------------------------------------------------

void Table::begin_to_grow(ByteRange segment) {
  growing_ = {.kind = TableChange::Kind::grow,
              .before = segments_,
              .items = items_,
              .objects = {segment, {}}};
  begin(growing_);
  offsets_[segments_] = segment.offset;
  growth_ = Growth::copy;
  grown_ = 0;
}

bool Table::grow_step() {
  const EntryNumber old_entries = growth_ <= Growth::add ? entries_ : entries_ / 2;
  const EntryNumber end = std::min(grown_ + kEntriesOfAStep, old_entries);
  switch (growth_) {
    case Growth::copy: {
      const Bytes segment = offsets_[segments_];
      for (EntryNumber old = grown_; old < end; ++old) {
        memory_.region().write_object(segment + old * sizeof(HstoreEntry), grown_entry(old));
      }
      memory_.persist(
          {segment + grown_ * sizeof(HstoreEntry), (end - grown_) * sizeof(HstoreEntry)});
      break;
    }
    case Growth::add:
      memory_.store_durably(root_ + offsetof(TableRoot, offsets) + segments_ * kWord,
                            offsets_[segments_]);
      memory_.store_durably(root_ + offsetof(TableRoot, segments), segments_ + 1);
      ++segments_;
      entries_ *= 2;
      growth_ = Growth::clear_hops;
      grown_ = 0;
      return true;
    case Growth::clear_hops:
      clear_stale_hops(grown_, end);
      break;
    case Growth::free_entries:
      free_stale_entries(grown_, end);
      break;
  }
  grown_ = end;
  if (grown_ < old_entries) return true;
  if (growth_ == Growth::free_entries) {
    finish(growing_);
    return false;
  }
  growth_ = static_cast<Growth>(static_cast<std::uint8_t>(growth_) + 1);
  grown_ = 0;
  return true;
}

// Returns the entry of the new segment that corresponds to an old one. Its hops refer to the items
// that move away from the old home, and it holds the old entry's item if that belongs here.
HstoreEntry Table::grown_entry(EntryNumber old) const {
  const EntryNumber mask = 2 * entries_ - 1;
  const EntryNumber grown = entries_ + old;
  HstoreEntry result;
  const auto entry = memory_.region().read_object<HstoreEntry>(offset_of(old));
  const State state(entry.state);
  if (state.used() && (((state.hash() & mask) + state.distance()) & mask) == grown) result = entry;
  result.hops = 0;
  for (std::uint64_t hops = entry.hops; hops != 0; hops &= hops - 1) {
    const std::uint32_t distance = distance_of(hops);
    if ((state_of(entry_behind(old, distance)).hash() & mask) == grown)
      result.hops |= bit(distance);
  }
  return result;
}

// --- stale hops and entries ----------------------------------------------------------------------

bool Table::is_referred_to(EntryNumber entry) const {
  const State state = state_of(entry);
  const EntryNumber home = home_of(state.hash());
  return entry_behind(home, state.distance()) == entry &&
         (hops_of(home) & bit(state.distance())) != 0;
}

void Table::clear_stale() {
  stale_hops_ = clear_stale_hops(0, entries_);
  stale_entries_ = free_stale_entries(0, entries_);
}

std::uint64_t Table::clear_stale_hops(EntryNumber begin, EntryNumber end) {
  std::uint64_t cleared = 0;
  for (EntryNumber home = begin; home < end; ++home) {
    const std::uint64_t hops = hops_of(home);
    std::uint64_t kept = hops;
    for (std::uint64_t left = hops; left != 0; left &= left - 1) {
      const std::uint32_t distance = distance_of(left);
      if (is_stale(home, distance)) kept &= ~bit(distance);
    }
    if (kept == hops) continue;
    memory_.region().store(offset_of(home), kept);
    memory_.flush({offset_of(home), kWord});
    cleared += static_cast<std::uint64_t>(std::popcount(hops ^ kept));
  }
  // The hops must be cleared durably before entries become free, since they must not refer to items
  // stored there later.
  if (cleared > 0) memory_.drain();
  return cleared;
}

std::uint64_t Table::free_stale_entries(EntryNumber begin, EntryNumber end) {
  std::uint64_t freed = 0;
  for (EntryNumber entry = begin; entry < end; ++entry) {
    if (!state_of(entry).used() || is_referred_to(entry)) continue;
    free_entry(entry);
    ++freed;
  }
  return freed;
}

std::string Table::audit() const {
  std::uint64_t hops = 0;
  std::uint64_t used = 0;
  for (EntryNumber entry = 0; entry < entries_; ++entry) {
    used += state_of(entry).used() ? 1 : 0;
    for (std::uint64_t left = hops_of(entry); left != 0; left &= left - 1) {
      ++hops;
      if (is_stale(entry, distance_of(left))) return "an entry refers to an item that is not there";
    }
  }
  if (used != hops) return "an entry is in use that nothing refers to";
  if (hops != items_) return "there are more or fewer items than counted";
  return {};
}

}  // namespace perdura::systems::mcas::hstore
