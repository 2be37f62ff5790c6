// The server's side of continuity hashing ("Consistent RDMA-Friendly Hashing on Remote Persistent
// Memory", section II). Only the server changes the index. There is no log.
//
// Every change of an item takes effect by one 8-byte store to the pair's indicator, so after a
// crash the item is either as it was or as it was to become:
//
//   insert   writes the item into a free slot, persists it, sets its bit         2 flushes
//   update   writes the item into a free slot, persists it, sets its bit and
//            clears the old one's by the same store                              2 flushes
//   delete   clears the bit                                                      1 flush
//
// The checks for readers are stored once the change is durable. Neither they nor the fingerprints
// are made durable: recovery computes both anew.
//
// A resize moves items one by one: each is inserted into the next table, then deleted from the old
// one. So after a crash at most one item, the first of the old table, is in both.
//
// Several threads may change the index concurrently if each has locked the segment pair that it
// changes, and if no thread is inside the index while another one resizes it (bucket_hash/locks.h).
// Besides the pairs, threads share the allocator of groups, which has its own lock, and atomic
// counters.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "platform/pmem/region.h"
#include "services/kv/kv.h"
#include "systems/bucket_hash/id_allocator.h"
#include "systems/bucket_hash/readers.h"
#include "systems/continuity/layout.h"
#include "systems/flushing.h"

namespace perdura::systems::continuity {

using bucket_hash::Readers;

class Index {
 public:
  // Places the index at `offset` (a multiple of 256) of the region, where it takes geometry.size()
  // bytes. Memory of zeros is an empty index; recover() must be called first on any other.
  Index(pmem::Region& region, Bytes offset, const Geometry& geometry,
        Flushing flushing = Flushing::lines, Readers readers = Readers::one_sided);
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  // Recovers the index after a crash or a restart, and completes an interrupted resize. Throws
  // UsageError if the index is damaged.
  void recover();

  std::optional<Slot> find(const Slot& key) const;

  // Inserts or updates an item; resizes the table if that is necessary and allowed. Nothing has
  // changed if the error is `out_of_space`.
  kv::Result<void> put(const Slot& item);
  kv::Result<void> erase(const Slot& key);

  // The same in steps, for a server that does other work in between.
  enum class Outcome : std::uint8_t {
    done,
    out_of_space,
    must_resize,  // nothing has changed
  };
  Outcome try_put(const Slot& item) { return try_put(item, hash_of(item)); }
  Outcome try_put(const Slot& item, std::uint64_t hash);
  kv::Result<void> erase(const Slot& key, std::uint64_t hash);
  // The number of the segment pair that operations on a key with this hash change.
  std::uint64_t pair_of(std::uint64_t hash) const { return table().home(hash).pair; }
  void begin_resize();
  // Moves the items of the next pair; returns false once the resize has ended. Until then, put and
  // erase must not be called.
  bool resize_step();

  // Calls `visit(slot)` for every item.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::uint32_t level = this->level(); level <= last_level(state()); ++level) {
      for (std::uint64_t pair = 0; pair < tables_[level].pairs; ++pair) {
        for_each_in(tables_[level], pair, [&](SlotNumber, const Slot& slot) { visit(slot); });
      }
    }
  }

  const Geometry& geometry() const { return geometry_; }
  const Table& table() const { return tables_[level()]; }
  std::uint64_t groups_used() const { return groups_[level()].taken(); }
  // The following may be called on any thread at any time. slots() counts those of the table in
  // use, including all of its groups.
  std::uint32_t level() const { return state().level; }
  bool resizing() const { return state().resizing; }
  std::uint64_t items() const { return items_.load(std::memory_order_relaxed); }
  static constexpr std::array kEvents{services::Event{"resizes"},
                                      services::Event{"added groups of SBuckets"},
                                      services::Event{"resizes resumed", true},
                                      services::Event{"halves of movements removed", true}};
  std::vector<std::uint64_t> events() const {
    return {resizes_, added_groups_.load(std::memory_order_relaxed), recovered_.resizes,
            recovered_.movements};
  }
  std::uint64_t slots() const { return slots_.load(std::memory_order_relaxed); }

 private:
  // A slot of a pair; if it belongs to the pair's group, the indicator tells where that is.
  struct SlotAddress {
    const Table* table = nullptr;
    std::uint64_t pair = 0;
    SlotNumber slot = 0;
    Fingerprint fingerprint = 0;  // the fingerprint of the item to be written there
  };

  // The steps whose order makes the index crash-consistent. `indicator` is that of the pair, with a
  // group if the slot is in one.
  void insert_item(SlotAddress address, Indicator indicator, const Slot& item);
  void update_item(SlotAddress to, SlotNumber from, Indicator indicator, const Slot& old_item,
                   const Slot& item);
  void move_item(SlotAddress from, const Slot& item);

  // Writes the item and its fingerprint. The fingerprint is in the cache line of the indicator, so
  // it is durable no later than the indicator is.
  void write_item(SlotAddress address, Indicator indicator, const Slot& item);
  void persist_item(SlotAddress address, Indicator indicator);

  // A slot that becomes occupied or free.
  struct Toggle {
    SlotNumber slot = 0;
    std::uint64_t term = 0;  // contribution of the slot's item to a check
  };
  Toggle toggle(SlotNumber slot, const Slot& item) const {
    return {slot, has_readers() ? check_term(slot, item) : 0};
  }
  // Stores and persists the indicator, then updates the checks.
  void change_indicator(SlotAddress pair, Indicator after, std::span<const Toggle> toggles);

  Indicator load_indicator(const Table& table, std::uint64_t pair) const {
    return region_.load(offset_ + table.header_offset(pair) + kIndicatorOffset);
  }
  void store_indicator(SlotAddress pair, Indicator after) {
    store_word(pair.table->header_offset(pair.pair) + kIndicatorOffset, after);
  }
  void persist_indicator(SlotAddress pair) {
    persist(pair.table->header_offset(pair.pair) + kIndicatorOffset, kWord);
  }
  void store_checks(SlotAddress pair, Indicator before, Indicator after,
                    std::span<const Toggle> toggles);

  void insert_moved(const Slot& item);
  void delete_moved(SlotAddress from, const Slot& item);

  // The outcome of a search: the pair's indicator and, if the key was found, its slot and item.
  struct Lookup {
    Indicator indicator = 0;
    SlotNumber slot = 0;
    std::optional<Slot> item{};
  };

  bool has_readers() const { return readers_ == Readers::one_sided; }
  State state() const { return state_.load(std::memory_order_relaxed); }
  static std::uint32_t last_level(State state) { return state.level + (state.resizing ? 1 : 0); }
  SlotWords load_item(const Table& table, std::uint64_t pair, SlotNumber slot,
                      Indicator indicator) const {
    return region_.read_object<SlotWords>(offset_ + table.slot_offset(pair, slot, indicator));
  }
  Slot read_item(const Table& table, std::uint64_t pair, SlotNumber slot,
                 Indicator indicator) const {
    return slot_of(load_item(table, pair, slot, indicator));
  }
  template <class Visit>
  void for_each_in(const Table& table, std::uint64_t pair, Visit visit) const {
    const Indicator indicator = load_indicator(table, pair);
    for (SlotNumber slot = 0; slot < table.all_slots(); ++slot) {
      if ((indicator & bit_of(slot)) == 0) continue;
      visit(slot, read_item(table, pair, slot, indicator));
    }
  }
  [[gnu::always_inline]] Lookup look_up(const Table& table, Home home, const KeyWords& key,
                                        Fingerprint fingerprint) const;
  // Finds a free slot for a new item of this segment. If that needs a group and the pair has none,
  // allocates one and adds it to `indicator`; the pair owns it only once that indicator has been
  // stored, so an earlier crash leaves the group free.
  std::optional<SlotNumber> room_in(std::uint32_t level, Home home, Indicator& indicator);

  void set_state(State state);
  void store_word(Bytes offset, std::uint64_t value);
  void persist(Bytes offset, Bytes length);
  void recover_table(std::uint32_t level);
  void recover_checks(const Table& table, std::uint64_t pair, Indicator indicator);
  void delete_first_if_moved();

  pmem::Region& region_;
  Bytes offset_;
  Geometry geometry_;
  Flushing flushing_;
  Readers readers_;
  std::array<Table, kMaxResizes + 1> tables_;
  std::array<bucket_hash::IdAllocator, kMaxResizes + 1> groups_;
  std::atomic<State> state_{};
  std::uint64_t next_pair_ = 0;  // the next pair whose items a resize moves
  std::uint64_t resizes_ = 0;    // ended since the index was opened
  std::atomic<std::uint64_t> added_groups_{0};
  // Changes that recovery has completed or undone.
  struct {
    std::uint64_t resizes = 0;
    std::uint64_t movements = 0;
  } recovered_;
  std::atomic<std::uint64_t> items_{0};
  std::atomic<std::uint64_t> slots_{0};
};

}  // namespace perdura::systems::continuity
