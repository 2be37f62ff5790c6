// The hash table of hstore: hopscotch hashing (Herlihy, Shavit, Tzafrir) in persistent memory, in
// segments, each of which doubles the table (MCAS, section 3.2.2). hstore/layout.h has pictures.
//
// The table does not know what keys and values are: whoever uses it writes the fields, makes what
// they refer to durable first, and compares keys.
//
// Between any two stores the table is what it was before or after an operation:
//
//   insert   the item is written into a free entry and flushed, then the hops of its home are
//            stored: they make it exist
//   move     to make room near a home, an item is copied into a free entry and flushed, then one
//            store of its home's hops drops the old place and adds the new one
//   update   in one line (layout.h)
//   erase    the hops are stored; what they referred to is free
//   grow     the new segment is written whole and flushed, with copies of the items that belong
//            there; then the number of segments is stored. From then on hops of old entries that
//            refer to items which have moved away are stale: the item's hash says that its home is
//            another one. They are cleared, and then the old copies become free
//
// Where an entry is free is not flushed: an entry that no hops refer to is free after a failure.
// recover() clears what is stale, as growing does. With a change log each change is logged first,
// and free entries are flushed, so that settle() needs to look at the entries of one change only.
//
// An item's new home, when the table of n entries grows, is its old one or n entries further on,
// and so is its new place; the distance between them remains. This holds at the table's end, too,
// where the entries behind the last one are those at the beginning. So two items never want the
// same place, and growing cannot fail.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "systems/mcas/hstore/change_log.h"
#include "systems/mcas/hstore/layout.h"
#include "systems/mcas/storage/damage.h"
#include "systems/mcas/storage/memory.h"

namespace perdura::systems::mcas::hstore {

struct Item {
  EntryNumber entry = 0;
  Bytes offset = 0;  // of the entry
  State state{0};

  Bytes key_offset() const { return offset + offsetof(Entry, key); }
  Bytes value_offset() const {
    return offset + offsetof(Entry, values) + state.which() * sizeof(Field);
  }
};

// The limits of a table, by which its root is checked after a restart.
struct TableBounds {
  std::uint32_t segments = kMostSegments;
  std::function<bool(Place)> contains{};  // whether a segment can lie there; empty: anywhere
};

class Table {
 public:
  // A table whose root is at `root`; `log`, which must outlive it, may be null. create(), recover()
  // or settle() must be called first. The latter two throw DamagedPool if the table cannot be so.
  Table(Memory memory, Bytes root, const TableShape& shape, ChangeLog* log = nullptr,
        TableBounds bounds = {})
      : memory_(memory), root_(root), shape_(shape), log_(log), bounds_(std::move(bounds)) {}

  // Makes an empty table of one segment, which lies at `segment`.
  void create(Bytes segment);
  // After a restart without a log.
  void recover();
  // After a restart with a log, whose last change this is: completes or undoes what it has left in
  // the table. Returns whether it has happened.
  bool settle(const Change& last);

  std::uint32_t segments() const { return segments_; }
  std::uint64_t entries() const { return entries_; }
  std::uint64_t items() const { return items_; }
  Place segment(std::uint32_t number) const {
    return {offsets_[number], shape_.entries_of(number) * sizeof(Entry)};
  }

  // The item of this hash for which `is_wanted(item)`.
  template <class IsWanted>
  std::optional<Item> find(std::uint64_t hash, IsWanted is_wanted) const {
    const EntryNumber home = home_of(hash);
    for (std::uint64_t hops = hops_of(home); hops != 0; hops &= hops - 1) {
      const Item item = item_at(entry_behind(home, distance_of(hops)));
      if (item.state.hash() == short_hash(hash) && is_wanted(item)) return item;
    }
    return std::nullopt;
  }

  // Has the caches fetch the home of this hash, or the items there, which needs the home.
  void prefetch_home(std::uint64_t hash) const { prefetch(home_of(hash)); }
  void prefetch_items(std::uint64_t hash) const {
    const EntryNumber home = home_of(hash);
    for (std::uint64_t hops = hops_of(home); hops != 0; hops &= hops - 1) {
      prefetch(entry_behind(home, distance_of(hops)));
    }
  }

  // A free entry for a new item of this hash, at most H - 1 behind its home. Items are moved for it
  // if necessary. Nothing if the table must grow.
  std::optional<EntryNumber> make_room(std::uint64_t hash);
  // These refer to objects of the heap, or free them: their key and value, or the new and the old
  // value. What was flushed of them becomes durable before an item refers to it. Without a log
  // inserts and updates are durable with the next drain() only, whatever else is changed before it:
  // an item that lies in another line than the hops which make it exist is durable before them, and
  // all that is stored later in the same line becomes durable later.
  void insert(EntryNumber entry, std::uint64_t hash, const Field& key, std::uint32_t key_length,
              const Field& value, std::uint32_t value_length, const Objects& objects);
  void update(const Item& item, const Field& value, std::uint32_t value_length,
              const Objects& objects);
  void erase(const Item& item, const Objects& objects);

  // Adds a segment, which lies there and has as many entries as the table: grow_step() is to be
  // called until it returns false. The table must not be used in between.
  void begin_to_grow(Place segment);
  bool grow_step();

  // Calls `visit(item)` for each item. Throws DamagedPool where hops refer to none: otherwise an
  // entry could be visited once for each of its neighbors.
  template <class Visit>
  void for_each(Visit visit) const {
    for (EntryNumber home = 0; home < entries_; ++home) {
      for (std::uint64_t hops = hops_of(home); hops != 0; hops &= hops - 1) {
        const std::uint32_t distance = distance_of(hops);
        const Item item = item_at(entry_behind(home, distance));
        if (is_stale(item.state, home, distance)) {
          throw DamagedPool("an entry refers to an item that is not there");
        }
        visit(item);
      }
    }
  }
  // What contradicts itself, as a phrase; empty if nothing does.
  std::string audit() const;

  // Since it was opened.
  std::uint64_t moves() const { return moves_; }                  // of items, to make room
  std::uint64_t stale_hops() const { return stale_hops_; }        // that recovery has cleared
  std::uint64_t stale_entries() const { return stale_entries_; }  // that recovery has freed

 private:
  enum class Growth : std::uint8_t { copy, add, clear_hops, free_entries };

  static std::uint32_t distance_of(std::uint64_t hops);
  static std::uint64_t short_hash(std::uint64_t hash) {
    return hash & ((std::uint64_t{1} << State::kHashBits) - 1);
  }
  EntryNumber home_of(std::uint64_t hash) const { return hash & (entries_ - 1); }
  EntryNumber entry_behind(EntryNumber entry, std::uint64_t distance) const {
    return (entry + distance) & (entries_ - 1);
  }
  // H, or the number of entries if there are fewer.
  std::uint64_t reach() const { return shape_.hops < entries_ ? shape_.hops : entries_; }
  Bytes offset_of(EntryNumber entry) const;
  std::uint64_t hops_of(EntryNumber entry) const { return memory_.region().load(offset_of(entry)); }
  State state_of(EntryNumber entry) const {
    return State(memory_.region().load(offset_of(entry) + offsetof(Entry, state)));
  }
  Item item_at(EntryNumber entry) const;

  void prefetch(EntryNumber entry) const { memory_.region().prefetch(offset_of(entry)); }
  void store_hops(EntryNumber home, std::uint64_t hops);
  // Ends a change by a word that is stored and flushed, and durable with the next drain().
  void finish_by(Bytes offset, std::uint64_t word, const Change& change);
  void free_entry(EntryNumber entry);
  std::optional<std::uint64_t> free_distance(EntryNumber home) const;
  // Moves an item into the free entry, from one that is nearer to the home; the distance of that
  // one from `entry`, or nothing if there is no such item.
  std::optional<std::uint64_t> move_into(EntryNumber entry);

  EntryNumber home_of(const Item& item) const {
    return entry_behind(item.entry, entries_ - item.state.distance());
  }
  void read_root();
  void begin(const Change& change);
  void finish(const Change& change);

  Entry grown_entry(EntryNumber old) const;
  bool is_stale(State state, EntryNumber home, std::uint32_t distance) const {
    return !state.used() || state.distance() != distance || home_of(state.hash()) != home;
  }
  bool is_stale(EntryNumber home, std::uint32_t distance) const {
    return is_stale(state_of(entry_behind(home, distance)), home, distance);
  }
  bool is_referred_to(EntryNumber entry) const;
  void clear_stale();
  // Of the entries from `begin` to `end`; both return how many there were.
  std::uint64_t clear_stale_hops(EntryNumber begin, EntryNumber end);
  std::uint64_t free_stale_entries(EntryNumber begin, EntryNumber end);

  Memory memory_;
  Bytes root_;
  TableShape shape_;
  ChangeLog* log_;
  TableBounds bounds_;
  std::array<std::uint64_t, kMostSegments> offsets_{};  // as in the root
  std::uint32_t segments_ = 0;
  std::uint64_t entries_ = 0;
  std::uint64_t items_ = 0;
  Growth growth_ = Growth::copy;  // what grow_step() does next
  EntryNumber grown_ = 0;         // from this entry on
  Change growing_;
  std::uint64_t moves_ = 0;
  std::uint64_t stale_hops_ = 0;
  std::uint64_t stale_entries_ = 0;
};

}  // namespace perdura::systems::mcas::hstore
