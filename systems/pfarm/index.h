// P-FaRM-KV ("Consistent RDMA-Friendly Hashing on Remote Persistent Memory", section III; "FaRM:
// Fast Remote Memory", the section on the hashtable): the server's side of the index, the only one
// that changes it.
//
// Every write of an item is one record of a redo log, which says what a slot and its bucket's
// header shall be:
//
//   insert   the item in a free slot, its bit set
//   update   the item in the place of the old one
//   delete   nothing in the slot, its bit cleared
//
// Each takes five flushes: the record, the log's mark, the slot, the header, the mark again. To
// move an item to another bucket takes one more: the header of the bucket that it comes from. To
// give a bucket an overflow block takes one: a link to an empty block changes nothing for anybody.
//
// An operation touches the home bucket of its key, the one before and the two behind it, and the
// chain of the home bucket. The checks for readers are stored when the change is durable, and are
// not persistent themselves: recovery computes them anew.
//
// Several threads may change the index at the same time if each has a log of its own, has locked
// the home bucket and those beside it that it touches, and none is in the index while another one
// resizes it (bucket_hash/locks.h). What they share besides are the free overflow blocks, which
// have a lock of their own, and counters.
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
  // The index at `offset` (a multiple of 256) of the region, of geometry.size() bytes. Memory of
  // zeros is an empty index; one that has been used must be recovered first.
  Index(pmem::Region& region, Bytes offset, const Geometry& geometry,
        Flushing flushing = Flushing::lines, Readers readers = Readers::one_sided);
  virtual ~Index() = default;
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  // After a crash or a restart: ends writes and a resize that were under way. Throws UsageError if
  // the index is damaged.
  void recover();

  std::optional<Slot> find(const Slot& key) const;

  // Inserts or updates; resizes if it must and may. `out_of_space` changes nothing.
  Result<void> put(const Slot& item);
  Result<void> erase(const Slot& key);

  // The same in steps, for a server that does something else in between.
  enum class Outcome : std::uint8_t {
    done,
    out_of_space,
    must_resize,  // nothing has changed
  };
  Outcome try_put(const Slot& item) { return try_put(item, hash_of(item), 0); }
  // For a worker with its log, a number below geometry().logs.
  Outcome try_put(const Slot& item, std::uint64_t hash, std::uint32_t worker);
  Result<void> erase(const Slot& key, std::uint64_t hash, std::uint32_t worker);
  // What the operations on a key with this hash touch besides the chain of its home bucket. A
  // bucket that the table does not have may be among them.
  std::array<std::uint64_t, 4> touched_by_put(std::uint64_t hash) const {
    const std::uint64_t home = table().home(hash);
    return {home > 0 ? home - 1 : home, home, home + 1, home + 2};
  }
  std::array<std::uint64_t, 2> touched_by_erase(std::uint64_t hash) const {
    const std::uint64_t home = table().home(hash);
    return {home, home + 1};
  }
  void begin_resize();
  // Moves the items of the next bucket; false if the resize has ended. Nothing may be put or erased
  // before.
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
  // Overflow blocks of the table in use that are in a chain.
  std::uint64_t blocks_used() const { return blocks_[level()].taken(); }
  // These may be called on any thread at any time. Slots are those of the table in use, with all of
  // its blocks.
  std::uint32_t level() const { return state().level; }
  bool resizing() const { return state().resizing; }
  // Items that were moved to make room for others.
  std::uint64_t movements() const { return movements_.load(std::memory_order_relaxed); }
  std::uint64_t items() const { return items_.load(std::memory_order_relaxed); }
  std::uint64_t slots() const { return slots_.load(std::memory_order_relaxed); }

 protected:
  struct Place {
    const Table* table = nullptr;
    std::uint64_t bucket = 0;
    SlotNumber slot = 0;
  };

  // Steps whose order makes crashes harmless and reads consistent, and choices on which reads rely.
  // A test replaces them by wrong ones, to show that it would notice.
  virtual void execute(RedoLog log, const Record& record);
  virtual void update_item(RedoLog log, Place place, const Slot& item);
  virtual void move_item(RedoLog log, Place from, Place to, const Slot& item);
  // A free slot in the neighborhood of a home bucket.
  virtual std::optional<Place> free_place(const Table& table, std::uint64_t home) const;

  // A worker's.
  RedoLog log(std::uint32_t worker) { return {memory_, geometry_.log_offset(worker)}; }
  // The steps of a write besides those of the log: of the slot, of the headers, and for readers.
  void write_slot(const Record& record);
  void write_headers(const Record& record);
  void flush_slot(const Record& record);
  void flush_headers(const Record& record);
  void drain() { memory_.drain(); }
  void publish(const Record& record);

  void insert_item(RedoLog log, Place place, const Slot& item);
  void delete_item(RedoLog log, Place place);
  Record record_of(Place place, const Slot& item, Header header) const;
  Header load_header(const Table& table, std::uint64_t bucket) const {
    return memory_.load(table.bucket_offset(bucket) + kHeaderOffset);
  }
  // The headers of two buckets between which an item moves.
  static void join(const Place& from, const Place& to, Header& from_header, Header& to_header);

 private:
  struct Found {
    Place place;
    Slot item;
  };

  State state() const { return state_.load(std::memory_order_relaxed); }
  std::uint32_t last_level() const { return level() + (resizing() ? 1 : 0); }
  // Those with a higher number are empty.
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
  std::optional<Found> find_in(const Table& table, std::uint64_t home, const Slot& key) const;
  std::optional<Found> find_in_bucket(const Table& table, std::uint64_t bucket,
                                      const Slot& key) const;
  std::optional<Place> free_place_in(const Table& table, std::uint64_t bucket) const;
  // Moves an item out of the neighborhood, if one can go to its own one's other bucket: at most one
  // movement, in place of FaRM's repeated displacement.
  std::optional<Place> make_room(RedoLog log, const Table& table, std::uint64_t home);
  std::optional<Place> move_out(RedoLog log, const Table& table, std::uint64_t bucket,
                                std::uint64_t item_home, std::uint64_t other_bucket);
  // In the chain of the bucket, which gets one more block if it must and can.
  std::optional<Place> overflow_place(std::uint32_t level, std::uint64_t home);
  std::optional<Place> add_block(std::uint32_t level, std::uint64_t last);

  void seal(const Table& table, std::uint64_t bucket);
  Place place_in_next(const Slot& item);
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
  std::uint64_t next_bucket_ = 0;  // to be moved
  std::atomic<std::uint64_t> movements_{0};
  std::atomic<std::uint64_t> items_{0};
  std::atomic<std::uint64_t> slots_{0};
};

}  // namespace perdura::systems::pfarm
