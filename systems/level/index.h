// The server's side of level hashing ("Write-Optimized and High-Performance Hashing Index Scheme
// for Persistent Memory", section 3). Only the server changes the index.
//
//   insert   into the emptier candidate of the top level, else of the bottom level: writes the
//            item, persists it, sets its token                                        2 flushes
//            else moves one item from a candidate (of the top level, else of the bottom
//            level) to that item's other bucket: copies it, sets the copy's token,
//            clears the original's, and inserts into the slot that became free        5 flushes
//   update   writes the item into a free slot of its bucket, persists it, sets its token
//            and clears the old one's by the same store                               2 flushes
//            else (no slot is free) writes the item to the log, marks the log entry,
//            overwrites the slot, clears the mark, advances the log                   5 flushes
//   delete   clears the token                                                         1 flush
//
// Items move only from the first bucket of their key to the second, and only from a level to the
// next but one. Readers search in the same order, and so cannot miss an item that is being moved.
//
// The checks for readers are stored once the change is durable, and are not made durable
// themselves: recovery computes them anew. Recovery also deletes items that a movement or a resize
// had copied but not yet deleted, and completes the overwrites that are marked in a log.
//
// Several threads may change the index concurrently if each has locked the candidate buckets of its
// key, and if no thread is inside the index while another one resizes it (bucket_hash/locks.h). A
// movement changes one more bucket, which it locks itself. Threads also share atomic counters and,
// if there are more threads than logs, the logs, each of which has a lock.
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
#include "systems/bucket_hash/locks.h"
#include "systems/bucket_hash/readers.h"
#include "systems/flushing.h"
#include "systems/level/layout.h"

namespace perdura::systems::level {

using bucket_hash::Readers;

class Index {
 public:
  // Places the index at `offset` (a multiple of 256) of the region, where it takes geometry.size()
  // bytes. Memory of zeros is an empty index; recover() must be called first on any other.
  Index(pmem::Region& region, Bytes offset, const Geometry& geometry,
        Flushing flushing = Flushing::lines, Readers readers = Readers::one_sided);
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  // Recovers the index after a crash or a restart: completes interrupted changes and an interrupted
  // resize. Throws UsageError if the index is damaged.
  void recover();

  std::optional<Slot> find(const Slot& key) const;

  // Inserts or updates an item; resizes the table if that is necessary and allowed. Nothing has
  // changed if the error is `out_of_space`.
  kv::Result<void> put(const Slot& item);
  kv::Result<void> erase(const Slot& key);

  // A thread that changes the index.
  struct Writer {
    std::uint32_t number = 0;
    // Its locks, which include those of the key's candidates; null if it is the only writer.
    bucket_hash::LockTable::Held* held = nullptr;
    std::uint64_t busy = 0;  // set when the outcome is `busy`: the bucket that is locked
  };
  // The same in steps, for a server that does other work in between.
  enum class Outcome : std::uint8_t {
    done,
    out_of_space,
    must_resize,  // here and with `out_of_space` nothing has changed
    busy,         // another writer holds a bucket that is needed: lock that one, too, and retry
  };
  Outcome try_put(const Slot& item, const Hashes& hashes, Writer& writer);
  kv::Result<void> erase(const Slot& key, const Hashes& hashes);
  // The candidate buckets of a key, which its operations change; numbered throughout the index.
  std::array<std::uint64_t, 4> candidates(const Hashes& key) const;
  void begin_resize();
  // Moves the items of the next bucket of the bottom level; returns false once the resize has
  // ended. Until then, put and erase must not be called.
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
  // The number of the bottom level, which is the number of resizes so far. This function and the
  // following ones may be called on any thread at any time. slots() counts those of both levels in
  // use.
  std::uint32_t bottom() const { return state_.load(std::memory_order_relaxed).bottom; }
  bool resizing() const { return state_.load(std::memory_order_relaxed).resizing; }
  // The number of items that were moved to make room for others, and of those that were overwritten
  // because their bucket was full.
  std::uint64_t movements() const { return movements_.load(std::memory_order_relaxed); }
  std::uint64_t overwrites() const { return overwrites_.load(std::memory_order_relaxed); }
  std::uint64_t items() const { return items_.load(std::memory_order_relaxed); }
  static constexpr std::array kEvents{services::Event{"resizes"},
                                      services::Event{"movements"},
                                      services::Event{"overwritten slots"},
                                      services::Event{"resizes resumed", true},
                                      services::Event{"halves of movements removed", true},
                                      services::Event{"overwrites completed", true}};
  std::vector<std::uint64_t> events() const {
    return {resizes_,           movements(),          overwrites(),
            recovered_.resizes, recovered_.movements, recovered_.overwrites};
  }
  std::uint64_t slots() const { return slots_.load(std::memory_order_relaxed); }

 private:
  // The address of a slot. Offsets are in bytes from the start of the index.
  struct SlotAddress {
    Bytes bucket = 0;
    SlotNumber slot = 0;
    Bytes offset() const { return bucket + slot_offset(slot); }
  };

  // The steps whose order makes the index crash-consistent and readers safe.
  void insert_item(SlotAddress address, const Slot& item, Tag tag);
  void update_item(SlotAddress to, SlotNumber from, const Slot& old_item, const Slot& item,
                   Tag tag);
  void overwrite_item(SlotAddress address, const Slot& old_item, const Slot& item, LogNumber log);
  void move_item(SlotAddress from, SlotAddress to, const Slot& item, Tag tag);
  void rehash_bucket(std::uint64_t bucket);

  void write_item(SlotAddress address, const Slot& item);
  void persist_item(SlotAddress address);
  void delete_item(SlotAddress address, const Slot& item);

  // The change of a bucket's check when a slot with this item becomes occupied or free.
  std::uint64_t toggle(SlotNumber slot, const Slot& item) const {
    return has_readers() ? check_term(slot, item) : 0;
  }
  // Stores and persists the tokens, then updates the check. `toggles` is the XOR of the toggle() of
  // all slots that change.
  void change_tokens(Bytes bucket, Tokens after, std::uint64_t toggles);
  Tokens load_tokens(Bytes bucket) const { return load_word(bucket + kTokensOffset); }
  std::uint64_t load_check(Bytes bucket) const { return load_word(bucket + kCheckOffset); }
  void store_tokens(Bytes bucket, Tokens tokens) { store_word(bucket + kTokensOffset, tokens); }
  void store_check(Bytes bucket, std::uint64_t check) { store_word(bucket + kCheckOffset, check); }
  void persist_tokens(Bytes bucket) { persist(bucket + kTokensOffset, kWord); }

  // These work on the next entry of the log.
  void log_item(SlotAddress address, const Slot& item, LogNumber log);
  void clear_log(LogNumber log);
  void write_log_entry(SlotAddress address, const Slot& item, LogNumber log);
  void persist_log_entry(LogNumber log);
  void mark_log_entry(std::uint64_t mark, LogNumber log);

  // A seal need not be durable: it is for readers only, which do not outlive the server, and
  // recovery sets it again.
  void seal(Bytes bucket);
  void insert_descendants(std::uint64_t bucket);
  void delete_all(Bytes bucket);

  void persist(Bytes offset, Bytes length);

  // The candidate buckets of a key and their tokens: the first and the second of the top level,
  // then the first and the second of the bottom level.
  struct Candidates {
    std::array<Bytes, 4> buckets{};
    std::array<Tokens, 4> tokens{};
  };
  static constexpr std::size_t kInTop = 0;
  static constexpr std::size_t kInBottom = 2;

  struct alignas(kCacheLine) Log {
    SpinLock lock;
    std::uint64_t position = 0;  // index of the next entry to use
  };

  bool has_readers() const { return readers_ == Readers::one_sided; }
  std::uint32_t last_level() const { return bottom() + (resizing() ? 2 : 1); }
  const Level& bottom_level() const { return bottom_; }
  const Level& top_level() const { return top_; }
  const Level& next_top_level() const { return levels_[bottom() + 2]; }
  // The number of a bucket, counted throughout the index.
  std::uint64_t bucket_number(Bytes bucket) const {
    return (bucket - levels_[0].offset) / kBucketSize;
  }

  std::array<Bytes, 4> candidate_offsets(const Hashes& key) const;
  Candidates load_candidates(const Hashes& key) const;
  struct LocatedItem {
    SlotAddress address;
    Slot item;
  };
  std::optional<LocatedItem> find_in(const Candidates& candidates, const KeyWords& key,
                                     Tag tag) const;
  std::optional<Slot> find_in_next_top(const KeyWords& key, const Hashes& hashes) const;
  std::optional<SlotNumber> find_in_bucket(Bytes bucket, const KeyWords& key, Tag tag) const;
  static std::optional<SlotAddress> room_in(const Candidates& candidates, std::size_t level);
  // A free slot, or `busy`, or neither if no room can be made.
  struct Room {
    std::optional<SlotAddress> address{};
    bool busy = false;
  };
  Room make_room(const Hashes& key, Writer& writer);
  Room make_room_in(const Level& level, std::uint64_t bucket, Writer& writer);

  std::uint64_t load_word(Bytes offset) const { return region_.load(offset_ + offset); }
  void store_word(Bytes offset, std::uint64_t value) { region_.store(offset_ + offset, value); }
  SlotWords load_item(SlotAddress address) const {
    return region_.read_object<SlotWords>(offset_ + address.offset());
  }
  Slot load_slot(SlotAddress address) const { return slot_of(load_item(address)); }
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
  bool is_slot(std::uint64_t offset) const;
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
  Level top_;  // copies of elements of levels_, for speed
  Level bottom_;
  std::vector<Log> logs_;
  std::uint64_t next_bucket_ = 0;  // the next bucket whose items a resize moves
  std::uint64_t resizes_ = 0;      // ended since the index was opened
  // Changes that recovery has completed or undone.
  struct {
    std::uint64_t resizes = 0;
    std::uint64_t movements = 0;
    std::uint64_t overwrites = 0;
  } recovered_;
  std::atomic<std::uint64_t> movements_{0};
  std::atomic<std::uint64_t> overwrites_{0};
  std::atomic<std::uint64_t> items_{0};
  std::atomic<std::uint64_t> slots_{0};
};

}  // namespace perdura::systems::level
