// The server's side of P-FaRM-KV ("Consistent RDMA-Friendly Hashing on Remote Persistent Memory",
// section III; "FaRM: Fast Remote Memory", the section on the hashtable). Only the server changes
// the index.
//
// Every write of an item is one record of a redo log. The record holds the new contents of a slot
// and of the header of its bucket:
//
//   insert   the item into a free slot, whose bit is set
//   update   the new item into the slot of the old one
//   delete   an empty item into the slot, whose bit is cleared
//
// Each write takes five flushes: the record, the log's mark, the slot, the header, and the mark
// again. A movement to another bucket takes one more, for the header of the bucket that the item
// leaves. Linking an overflow block takes one flush and no record, since a link to an empty block
// does not change what the table holds.
//
// An operation touches the home bucket of its key, the bucket before it and the two after it, and
// the home bucket's chain of overflow blocks. The checks for readers are stored once the change is
// durable, and are not made durable themselves: recovery computes them anew.
//
// Several threads may change the index concurrently if each has a log of its own and has locked the
// home bucket and the buckets beside it that it touches, and if no thread is inside the index while
// another one resizes it (bucket_hash/locks.h). Threads also share the allocator of overflow
// blocks, which has its own lock, and atomic counters.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>

#include "services/kv/kv.h"
#include "systems/bucket_hash/id_allocator.h"
#include "systems/pfarm/log.h"

namespace perdura::systems::pfarm {

class Index {
 public:
  // Places the index at `offset` (a multiple of 256) of the region, where it takes geometry.size()
  // bytes. Memory of zeros is an empty index; recover() must be called first on any other.
  Index(pmem::Region& region, Bytes offset, const Geometry& geometry,
        Flushing flushing = Flushing::lines, Readers readers = Readers::one_sided);
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  // Recovers the index after a crash or a restart: completes interrupted writes and an interrupted
  // resize. Throws UsageError if the index is damaged.
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
  Outcome try_put(const Slot& item) { return try_put(item, hash_of(item), 0); }
  // `worker` is the number of the calling worker, below geometry().logs; it selects the log.
  Outcome try_put(const Slot& item, std::uint64_t hash, std::uint32_t worker);
  kv::Result<void> erase(const Slot& key, std::uint64_t hash, std::uint32_t worker);
  // The buckets that operations on a key with this hash touch, besides the chain of its home
  // bucket. Some numbers may lie outside of the table.
  std::array<std::uint64_t, 4> touched_by_put(std::uint64_t hash) const {
    const std::uint64_t home = table().home(hash);
    return {home > 0 ? home - 1 : home, home, home + 1, home + 2};
  }
  std::array<std::uint64_t, 2> touched_by_erase(std::uint64_t hash) const {
    const std::uint64_t home = table().home(hash);
    return {home, home + 1};
  }
  void begin_resize();
  // Moves the items of the next bucket; returns false once the resize has ended. Until then, put
  // and erase must not be called.
  bool resize_step();

  // Calls `visit(slot)` for every item.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::uint32_t level = this->level(); level <= last_level(); ++level) {
      for (std::uint64_t bucket = 0; bucket < used_buckets(level); ++bucket) {
        for_each_in(tables_[level], bucket, [&](SlotNumber, const Slot& slot) { visit(slot); });
      }
    }
  }

  const Geometry& geometry() const { return geometry_; }
  const Table& table() const { return tables_[level()]; }
  // The number of overflow blocks of the table in use that are part of a chain.
  std::uint64_t blocks_used() const { return blocks_[level()].taken(); }
  // These may be called on any thread at any time. slots() counts those of the table in use,
  // including all of its overflow blocks.
  std::uint32_t level() const { return state().level; }
  bool resizing() const { return state().resizing; }
  // The number of items that were moved to make room for others.
  std::uint64_t movements() const { return movements_.load(std::memory_order_relaxed); }
  std::uint64_t items() const { return items_.load(std::memory_order_relaxed); }
  static constexpr std::array kEvents{services::Event{"resizes"}, services::Event{"movements"},
                                      services::Event{"overflow blocks linked"},
                                      services::Event{"resizes resumed", true},
                                      services::Event{"writes redone", true}};
  std::vector<std::uint64_t> events() const {
    return {resizes_, movements(), linked_blocks_.load(std::memory_order_relaxed),
            recovered_.resizes, recovered_.writes};
  }
  std::uint64_t slots() const { return slots_.load(std::memory_order_relaxed); }

 private:
  struct SlotAddress {
    const Table* table = nullptr;
    std::uint64_t bucket = 0;
    SlotNumber slot = 0;
  };

  // The steps whose order makes the index crash-consistent and reads consistent.
  void execute(RedoLog log, const Record& record);
  void insert_item(RedoLog log, SlotAddress address, const Slot& item);
  void update_item(RedoLog log, SlotAddress address, const Slot& item);
  void delete_item(RedoLog log, SlotAddress address);
  void move_item(RedoLog log, SlotAddress from, SlotAddress to, const Slot& item);
  // A free slot in the neighborhood of a home bucket, that is, in it or in the next one.
  std::optional<SlotAddress> free_slot_near(const Table& table, std::uint64_t home) const;

  // The log of a worker.
  RedoLog log(std::uint32_t worker) { return {memory_, geometry_.log_offset(worker)}; }
  // The steps of a write besides those of the log: they store the slot and the headers.
  void write_slot(const Record& record);
  void write_headers(const Record& record);
  void flush_slot(const Record& record);
  void flush_headers(const Record& record);
  void publish(const Record& record);

  Record record_of(SlotAddress address, const Slot& item, Header header) const;
  Header load_header(const Table& table, std::uint64_t bucket) const {
    return memory_.load(table.bucket_offset(bucket) + kHeaderOffset);
  }
  // Increments the joint versions of two neighboring buckets between which an item moves.
  static void join(const SlotAddress& from, const SlotAddress& to, Header& from_header,
                   Header& to_header);

  struct LocatedItem {
    SlotAddress address;
    Slot item;
  };

  State state() const { return state_.load(std::memory_order_relaxed); }
  std::uint32_t last_level() const { return level() + (resizing() ? 1 : 0); }
  // The number of buckets and blocks of a table that may hold items; all above it are empty.
  std::uint64_t used_buckets(std::uint32_t level) const {
    return tables_[level].first_block() + blocks_[level].end();
  }
  Link load_link(const Table& table, std::uint64_t bucket) const {
    return memory_.load(table.bucket_offset(bucket) + kLinkOffset);
  }
  Slot read_item(const Table& table, std::uint64_t bucket, SlotNumber slot) const {
    return memory_.read<Slot>(table.bucket_offset(bucket) + slot_offset(slot));
  }
  template <class Visit>
  void for_each_in(const Table& table, std::uint64_t bucket, Visit visit) const {
    for (Header bits = load_header(table, bucket) & kOccupied; bits != 0; bits &= bits - 1) {
      const auto slot = static_cast<SlotNumber>(std::countr_zero(bits));
      visit(slot, read_item(table, bucket, slot));
    }
  }
  std::optional<LocatedItem> find_in(const Table& table, std::uint64_t home, const Slot& key) const;
  std::optional<LocatedItem> find_in_bucket(const Table& table, std::uint64_t bucket,
                                            const Slot& key) const;
  std::optional<SlotAddress> free_slot_in(const Table& table, std::uint64_t bucket) const;
  // Makes room in the neighborhood of `home` by moving an item to the other bucket of that item's
  // own neighborhood. Tries a single movement, instead of FaRM's repeated displacement.
  std::optional<SlotAddress> make_room(RedoLog log, const Table& table, std::uint64_t home);
  std::optional<SlotAddress> move_out(RedoLog log, const Table& table, std::uint64_t bucket,
                                      std::uint64_t item_home, std::uint64_t other_bucket);
  // A free slot in the chain of a home bucket, to which a block is added if that is necessary and
  // possible.
  std::optional<SlotAddress> overflow_slot(std::uint32_t level, std::uint64_t home);
  std::optional<SlotAddress> add_block(std::uint32_t level, std::uint64_t last);

  void seal(const Table& table, std::uint64_t bucket);
  SlotAddress slot_in_next(const Slot& item);
  void publish(Bytes bucket);
  std::uint64_t check_of(Bytes bucket) const;

  void set_state(State state);
  void store_state(State state);
  void recover_log(RedoLog log);
  void recover_table(std::uint32_t level);
  bool has_bucket_at(Bytes offset) const;

  Memory memory_;
  Geometry geometry_;
  Readers readers_;
  std::array<Table, kMaxResizes + 1> tables_;
  std::array<bucket_hash::IdAllocator, kMaxResizes + 1> blocks_;
  std::atomic<State> state_{};
  std::uint64_t next_bucket_ = 0;  // the next bucket whose items a resize moves
  std::uint64_t resizes_ = 0;      // ended since the index was opened
  std::atomic<std::uint64_t> linked_blocks_{0};
  // Changes that recovery has completed.
  struct {
    std::uint64_t resizes = 0;
    std::uint64_t writes = 0;
  } recovered_;
  std::atomic<std::uint64_t> movements_{0};
  std::atomic<std::uint64_t> items_{0};
  std::atomic<std::uint64_t> slots_{0};
};

}  // namespace perdura::systems::pfarm
