// The hash table of hstore: hopscotch hashing (Herlihy, Shavit, Tzafrir) in persistent memory, in
// segments each of which doubles the table (MCAS, section 3.2.2). hstore/layout.h has pictures.
//
// The table does not interpret keys and values: its user fills the fields, first makes durable what
// they refer to, and compares keys.
//
// Between any two stores the table has the state before or after an operation:
//
//   insert   the item is written into a free entry and flushed, then the hops of its home are
//            stored: they make it exist
//   move     to make room near a home, an item is copied into a free entry and flushed, then one
//            store of its home's hops drops the old entry and adds the new one
//   update   within one line (layout.h)
//   erase    the hops are stored; the entry to which they referred is then free
//   grow     the new segment is written whole and flushed, with copies of the items that belong
//            there; then the number of segments is stored. From then on hops of old entries that
//            refer to items which have moved away are stale: the item's hash selects another home.
//            They are cleared, and then the old copies become free
//
// Freeing an entry is not flushed: an entry to which no hops refer is free after a failure.
// recover() clears stale hops and entries, as growing does. With a change log each change is logged
// first, and freed entries are flushed, so that settle() examines the entries of one change only.
//
// When a table of n entries grows, an item's new home is its old one or n entries further on, and
// so is its new entry; their distance remains. This also holds at the table's end, where the first
// entries follow the last one. So no two items need the same entry, and growing cannot fail.
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
  Bytes offset = 0;  // the entry's
  State state{0};

  Bytes key_offset() const { return offset + offsetof(HstoreEntry, key); }
  Bytes value_offset() const {
    return offset + offsetof(HstoreEntry, values) + state.which() * sizeof(Field);
  }
};

// The limits of a table, against which its root is checked after a restart.
struct TableBounds {
  std::uint32_t segments = kMostSegments;
  std::function<bool(ByteRange)> contains{};  // true if a segment may be there; empty: anywhere
};

class Table {
 public:
  // A table whose root is at `root`. `log` may be null, and must outlive the table. create(),
  // recover() or settle() must be called first. The latter two throw DamagedPool if the memory has
  // contents that no table can have.
  Table(Memory memory, Bytes root, const TableShape& shape, ChangeLog* log = nullptr,
        TableBounds bounds = {})
      : memory_(memory), root_(root), shape_(shape), log_(log), bounds_(std::move(bounds)) {}

  // Creates an empty table of one segment, at the offset `segment`.
  void create(Bytes segment);
  // Opens the table after a restart without a log.
  void recover();
  // Opens the table after a restart with a log whose last change is `last`: completes or undoes its
  // effects on the table. Returns true if the change has happened.
  bool settle(const TableChange& last);

  std::uint32_t segments() const { return segments_; }
  std::uint64_t entries() const { return entries_; }
  std::uint64_t items() const { return items_; }
  ByteRange segment(std::uint32_t number) const {
    return {offsets_[number], shape_.entries_of(number) * sizeof(HstoreEntry)};
  }

  // Returns the item of this hash for which `is_wanted(item)`.
  template <class IsWanted>
  std::optional<Item> find(std::uint64_t hash, IsWanted is_wanted) const {
    const EntryNumber home = home_of(hash);
    for (std::uint64_t hops = hops_of(home); hops != 0; hops &= hops - 1) {
      const Item item = item_at(entry_behind(home, distance_of(hops)));
      if (item.state.hash() == short_hash(hash) && is_wanted(item)) return item;
    }
    return std::nullopt;
  }

  // Prefetches the home of this hash, or the items of that home, which reads the home.
  void prefetch_home(std::uint64_t hash) const { prefetch(home_of(hash)); }
  void prefetch_items(std::uint64_t hash) const {
    const EntryNumber home = home_of(hash);
    for (std::uint64_t hops = hops_of(home); hops != 0; hops &= hops - 1) {
      prefetch(entry_behind(home, distance_of(hops)));
    }
  }

  // Returns a free entry for a new item of this hash, at most H - 1 after its home, and moves items
  // for that if necessary. Returns nothing if the table must grow.
  std::optional<EntryNumber> make_room(std::uint64_t hash);
  // Change the table. `objects` are the heap's objects that the change refers to or frees: key and
  // value, or new and old value. Everything of them that has been flushed becomes durable before an
  // item refers to it. Without a log, inserts and updates are durable only after the next drain(),
  // whatever else is changed before it. The order is right all the same: an item outside of the
  // line of its hops is durable before the hops are stored, and stores to the same line become
  // durable in their order.
  void insert(EntryNumber entry, std::uint64_t hash, const Field& key, std::uint32_t key_length,
              const Field& value, std::uint32_t value_length, const Objects& objects);
  void update(const Item& item, const Field& value, std::uint32_t value_length,
              const Objects& objects);
  void erase(const Item& item, const Objects& objects);

  // Begins to add the segment in this range, which has as many entries as the table. Then
  // grow_step() must be called until it returns false. The table must not be used before that.
  void begin_to_grow(ByteRange segment);
  bool grow_step();

  // Calls `visit(item)` for each item. Throws DamagedPool if hops refer to an item that is not
  // theirs: otherwise an entry could be visited once for each of its neighbors.
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
  // Returns an inconsistency as a phrase; empty if there is none.
  std::string audit() const;

  // Counts since the table was opened.
  std::uint64_t moves() const { return moves_; }                  // items moved to make room
  std::uint64_t stale_hops() const { return stale_hops_; }        // cleared by recovery
  std::uint64_t stale_entries() const { return stale_entries_; }  // freed by recovery

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
    return State(memory_.region().load(offset_of(entry) + offsetof(HstoreEntry, state)));
  }
  Item item_at(EntryNumber entry) const;

  void prefetch(EntryNumber entry) const { memory_.region().prefetch(offset_of(entry)); }
  void store_hops(EntryNumber home, std::uint64_t hops);
  // Completes a change by a store of one word, which is flushed, and durable after the next
  // drain().
  void finish_by(Bytes offset, std::uint64_t word, const TableChange& change);
  void free_entry(EntryNumber entry);
  std::optional<std::uint64_t> free_distance(EntryNumber home) const;
  // Moves an item that is nearer to its home into the free `entry`. Returns the distance from the
  // item's old entry to `entry`, or nothing if there is no such item.
  std::optional<std::uint64_t> move_into(EntryNumber entry);

  EntryNumber home_of(const Item& item) const {
    return entry_behind(item.entry, entries_ - item.state.distance());
  }
  void read_root();
  void begin(const TableChange& change);
  void finish(const TableChange& change);

  HstoreEntry grown_entry(EntryNumber old) const;
  bool is_stale(State state, EntryNumber home, std::uint32_t distance) const {
    return !state.used() || state.distance() != distance || home_of(state.hash()) != home;
  }
  bool is_stale(EntryNumber home, std::uint32_t distance) const {
    return is_stale(state_of(entry_behind(home, distance)), home, distance);
  }
  bool is_referred_to(EntryNumber entry) const;
  void clear_stale();
  // Both treat the entries from `begin` to `end`, and return how many hops they have cleared or how
  // many entries they have freed.
  std::uint64_t clear_stale_hops(EntryNumber begin, EntryNumber end);
  std::uint64_t free_stale_entries(EntryNumber begin, EntryNumber end);

  Memory memory_;
  Bytes root_;
  TableShape shape_;
  ChangeLog* log_;
  TableBounds bounds_;
  std::array<std::uint64_t, kMostSegments> offsets_{};  // a copy of the root's
  std::uint32_t segments_ = 0;
  std::uint64_t entries_ = 0;
  std::uint64_t items_ = 0;
  Growth growth_ = Growth::copy;  // the next action of grow_step()
  EntryNumber grown_ = 0;         // the entry at which it continues
  TableChange growing_;
  std::uint64_t moves_ = 0;
  std::uint64_t stale_hops_ = 0;
  std::uint64_t stale_entries_ = 0;
};

}  // namespace perdura::systems::mcas::hstore
