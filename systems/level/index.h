// Level hashing ("Write-Optimized and High-Performance Hashing Index Scheme for Persistent Memory",
// section 3): the server's side of the index, the only one that changes it.
//
//   insert   into the emptier of the two buckets of the top level, else of the bottom level: writes
//            the item, persists it, sets its token                                    2 flushes
//            else moves one item of a candidate in the top, else in the bottom level
//            to its other bucket: copies it, sets the copy's token, clears the other one,
//            and inserts into its slot                                                5 flushes
//   update   writes the item into a free slot of its bucket, persists it, sets its token and
//            clears the old one's by the same store                                   2 flushes
//            else writes it to the log, marks the entry, overwrites the slot, clears
//            the mark, lets the log go on                                             5 flushes
//   delete   clears the token                                                         1 flush
//
// Items move from the first bucket of their key to the second, never back, and from a level to the
// next but one: readers look for them in that order, and so cannot miss one that is moved.
//
// The checks for readers are stored when the change is durable, and are not persistent themselves:
// recovery computes them anew. It deletes, too, what a movement or a resize has copied but not
// deleted yet, and overwrites what the log says.
//
// Several threads may change the index at the same time if each has locked the candidates of its
// key, and none is in the index while another one resizes it (bucket_hash/locks.h). A movement
// changes one bucket more, which it locks itself. What they share besides are counters and, if
// there are more threads than logs, the logs, which have locks of their own.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "platform/pmem/region.h"
#include "platform/runtime/sync.h"
#include "services/kv/kv.h"
#include "systems/bucket_hash/flushing.h"
#include "systems/bucket_hash/locks.h"
#include "systems/level/layout.h"

namespace perdura::systems::level {

using bucket_hash::Flushing;
using bucket_hash::Readers;

class Index {
 public:
  // The index at `offset` (a multiple of 256) of the region, of geometry.size() bytes. Memory of
  // zeros is an empty index; one that has been used must be recovered first.
  Index(pmem::Region& region, Bytes offset, const Geometry& geometry,
        Flushing flushing = Flushing::lines, Readers readers = Readers::one_sided);
  virtual ~Index() = default;
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  // After a crash or a restart: ends what was under way, a resize, too. Throws UsageError if the
  // index is damaged.
  void recover();

  std::optional<Slot> find(const Slot& key) const;

  // Inserts or updates; resizes if it must and may. `out_of_space` changes nothing.
  Result<void> put(const Slot& item);
  Result<void> erase(const Slot& key);

  // One of the threads that change the index.
  struct Writer {
    std::uint32_t number = 0;
    // What it has locked: the candidates, at least. None if it is the only writer.
    bucket_hash::LockTable::Held* held = nullptr;
    std::uint64_t busy = 0;  // the bucket because of which the outcome was `busy`
  };
  // The same in steps, for a server that does something else in between.
  enum class Outcome : std::uint8_t {
    done,
    out_of_space,
    must_resize,  // these two have changed nothing
    busy,         // another writer has locked a bucket that is needed: again with that one, too
  };
  Outcome try_put(const Slot& item, const Hashes& hashes, Writer& writer);
  Result<void> erase(const Slot& key, const Hashes& hashes);
  // The buckets that operations on a key change, by their numbers in the whole index.
  std::array<std::uint64_t, 4> candidates(const Hashes& key) const;
  void begin_resize();
  // Moves the items of the next bucket of the bottom level; false if the resize has ended. Nothing
  // may be put or erased before.
  bool resize_step();

  // Calls `visit(slot)` for every item.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::uint32_t number = bottom(); number <= last_level(); ++number) {
      const Level& level = levels_[number];
      for (std::uint64_t bucket = 0; bucket < level.buckets; ++bucket) {
        for_each_in(level.bucket_offset(bucket),
                    [&](SlotNumber, const Slot& slot) { visit(slot); });
      }
    }
  }

  const Geometry& geometry() const { return geometry_; }
  // The number of the bottom level: how often the table was resized.
  // This and what follows may be called on any thread at any time. Slots are those of the two
  // levels in use.
  std::uint32_t bottom() const { return state_.load(std::memory_order_relaxed).bottom; }
  bool resizing() const { return state_.load(std::memory_order_relaxed).resizing; }
  std::uint64_t items() const { return items_.load(std::memory_order_relaxed); }
  std::uint64_t slots() const { return slots_.load(std::memory_order_relaxed); }

 protected:
  // Of a slot; offsets are in bytes from the start of the index.
  struct Place {
    Bytes bucket = 0;
    SlotNumber slot = 0;
    Bytes offset() const { return bucket + slot_offset(slot); }
  };

  // The steps whose order makes crashes and readers harmless. A test replaces them by wrong ones,
  // to show that it would notice.
  virtual void insert_item(Place place, const Slot& item, Tag tag);
  virtual void update_item(Place to, SlotNumber from, const Slot& old_item, const Slot& item,
                           Tag tag);
  virtual void overwrite_item(Place place, const Slot& old_item, const Slot& item, LogNumber log);
  virtual void move_item(Place from, Place to, const Slot& item, Tag tag);
  // Where an item of this bucket may be moved to: from the first candidate to the second.
  virtual std::optional<Side> side_to_move_to(const Level& level, std::uint64_t bucket) const;
  virtual void rehash_bucket(std::uint64_t bucket);

  void write_item(Place place, const Slot& item);
  virtual void persist_item(Place place);
  void delete_item(Place place, const Slot& item);

  // One occupied slot more or less.
  std::uint64_t toggle(SlotNumber slot, const Slot& item) const {
    return has_readers() ? check_term(slot, item) : 0;
  }
  // Stores and persists the tokens, then stores the check; `toggles` is the sum of those terms.
  virtual void change_tokens(Bytes bucket, Tokens after, std::uint64_t toggles);
  Tokens load_tokens(Bytes bucket) const { return load_word(bucket + kTokensOffset); }
  std::uint64_t load_check(Bytes bucket) const { return load_word(bucket + kCheckOffset); }
  void store_tokens(Bytes bucket, Tokens tokens) { store_word(bucket + kTokensOffset, tokens); }
  void store_check(Bytes bucket, std::uint64_t check) { store_word(bucket + kCheckOffset, check); }
  virtual void persist_tokens(Bytes bucket) { persist(bucket + kTokensOffset, kWord); }

  // Each of the entry that is next in this log.
  virtual void log_item(Place place, const Slot& item, LogNumber log);
  void clear_log(LogNumber log);
  void write_log_entry(Place place, const Slot& item, LogNumber log);
  void persist_log_entry(LogNumber log);
  void mark_log_entry(std::uint64_t mark, LogNumber log);

  // For readers only, who do not outlive the server: recovery seals again.
  void seal(Bytes bucket);
  void insert_descendants(std::uint64_t bucket);
  void delete_all(Bytes bucket);

  void persist(Bytes offset, Bytes length);

 private:
  // Of a key: first and second in the top level, first and second in the bottom level.
  struct Candidates {
    std::array<Bytes, 4> buckets{};
    std::array<Tokens, 4> tokens{};
  };
  static constexpr std::size_t kInTop = 0;
  static constexpr std::size_t kInBottom = 2;

  struct alignas(kCacheLine) Log {
    SpinLock lock;
    std::uint64_t position = 0;  // of the entry to use next
  };

  bool has_readers() const { return readers_ == Readers::one_sided; }
  std::uint32_t last_level() const { return bottom() + (resizing() ? 2 : 1); }
  const Level& bottom_level() const { return bottom_; }
  const Level& top_level() const { return top_; }
  const Level& next_top_level() const { return levels_[bottom() + 2]; }
  // In the whole index.
  std::uint64_t bucket_number(Bytes bucket) const {
    return (bucket - levels_[0].offset) / kBucketSize;
  }

  std::array<Bytes, 4> candidate_offsets(const Hashes& key) const;
  Candidates load_candidates(const Hashes& key) const;
  struct Found {
    Place place;
    Slot item;
  };
  std::optional<Found> find_in(const Candidates& candidates, const KeyWords& key, Tag tag) const;
  std::optional<Slot> find_in_next_top(const KeyWords& key, const Hashes& hashes) const;
  std::optional<SlotNumber> find_in_bucket(Bytes bucket, const KeyWords& key, Tag tag) const;
  static std::optional<Place> room_in(const Candidates& candidates, std::size_t level);
  // `busy`, or where there is room now.
  struct Room {
    std::optional<Place> place{};
    bool busy = false;
  };
  Room make_room(const Hashes& key, Writer& writer);
  Room make_room_in(const Level& level, std::uint64_t bucket, Writer& writer);

  std::uint64_t load_word(Bytes offset) const { return region_.load(offset_ + offset); }
  void store_word(Bytes offset, std::uint64_t value) { region_.store(offset_ + offset, value); }
  SlotWords load_item(Place place) const {
    return region_.read_object<SlotWords>(offset_ + place.offset());
  }
  Slot load_slot(Place place) const { return slot_of(load_item(place)); }
  template <class Visit>
  void for_each_in(Bytes bucket, Visit visit) const {
    const Tokens tokens = load_tokens(bucket);
    for (SlotNumber slot = 0; slot < kBucketSlots; ++slot) {
      if (is_occupied(tokens, slot)) visit(slot, load_slot({bucket, slot}));
    }
  }

  void set_state(State state);
  void store_state(State state);
  void recover_log(LogNumber log);
  bool is_slot(std::uint64_t place) const;
  std::uint64_t recover_bucket(const Level& level, std::uint64_t bucket);
  std::optional<Bytes> bucket_of_copy(const Level& level, std::uint64_t bucket,
                                      const Hashes& key) const;

  pmem::Region& region_;
  Bytes offset_;
  Geometry geometry_;
  Flushing flushing_;
  Readers readers_;
  std::array<Level, kMaxResizes + 2> levels_;
  std::atomic<State> state_{};
  Level top_;  // of levels_, for speed
  Level bottom_;
  std::vector<Log> logs_;
  std::uint64_t next_bucket_ = 0;  // to be moved
  std::atomic<std::uint64_t> items_{0};
  std::atomic<std::uint64_t> slots_{0};
};

}  // namespace perdura::systems::level
