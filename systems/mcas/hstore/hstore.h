// hstore, the storage engine with its hash table in persistent memory and its heap allocator in
// DRAM (MCAS, section 3.2). With a change log it is hstore-cc, whose heap is persistent.
//
// A put that creates a key makes the bytes and the item durable before the item exists. A put that
// overwrites makes the new value durable before the item refers to it, and then frees the old one.
// An erase frees the objects of an item when the item is durably gone. So memory that a failure may
// leave in use is never overwritten, and all other memory is free after the failure. A put that
// frees nothing can leave its last fence to its caller.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "systems/mcas/hstore/change_log.h"
#include "systems/mcas/hstore/table.h"
#include "systems/mcas/storage/engine.h"
#include "systems/mcas/storage/pool_heap.h"
#include "systems/mcas/storage/region_allocator.h"

namespace perdura::systems::mcas::hstore {

struct Shape {
  TableShape table;
  std::uint32_t most_segments = kMostSegments;
  Heap::Geometry heap;
  Bytes heap_map = 0;            // the offset of the shard's heap map (hstore_cc/heap_map.h)
  Bytes longest_key = ~Bytes{};  // a longer one means damage
};

class Hstore final : public Engine {
 public:
  // The engine of the pool with this identifier. Without a log its heap is reconstituted on
  // recovery.
  Hstore(Memory memory, RegionAllocator& regions, std::uint64_t pool, const Shape& shape,
         std::unique_ptr<ChangeLog> log = nullptr);

  std::optional<Bytes> create() override;
  Recovered recover(Bytes root) override;

  std::optional<ByteRange> get(Key key) const override;
  std::uint64_t prefetch(Key key) const override;
  void prefetch_further(std::uint64_t hash) const override { table_->prefetch_items(hash); }
  PutOutcome put(Key key, Value value) override { return drained(put_flushed(key, value)); }
  PutOutcome put_flushed(Key key, Value value) override;
  bool grow_step() override { return table_->grow_step(); }
  bool erase(Key key) override;
  void iterate(const std::function<void(Key, ByteRange)>& visit) const override;
  std::optional<ByteRange> reserve(Bytes length) override { return heap_.reserve(length); }
  void release(ByteRange reserved) override { heap_.release(reserved); }
  PutOutcome put_reserved(Key key, ByteRange value) override;
  EngineStatistics statistics() const override;
  std::string audit() const override;

  const Table& table() const { return *table_; }
  const Heap& heap() const { return heap_.heap(); }

 private:
  // A key or a value that has been written but is not referred to yet.
  struct Kept {
    Field field;
    std::uint32_t length = 0;  // the field's length in the entry's state
    std::optional<ByteRange>
        range{};  // its range if it is in the heap; flushed, but not durable yet

    static Kept at(ByteRange range) { return {Field::at(range), State::kElsewhere, range}; }
  };

  std::optional<Item> find(Key key, std::uint64_t hash) const;
  bool has_key(const Item& item, Key key) const;
  // The range of the bytes of the field at offset `field` of the pool's memory. This function and
  // the following ones throw DamagedPool if the field has an impossible range.
  ByteRange range_of(Bytes field, std::uint32_t length) const;
  ByteRange key_of(const Item& item) const;
  ByteRange value_of(const Item& item) const;

  // The object outside of its entry that an item refers to and that is to be freed, or none.
  ByteRange object_at(std::uint32_t length, ByteRange range) const;
  bool are_apart(const Objects& objects) const;
  // Does nothing if there is no object.
  void free(ByteRange object) {
    if (object != ByteRange{}) heap_.free(object);
  }
  std::optional<Kept> keep(std::span<const std::byte> bytes);
  // Puts the value that `keep_value` returns, if there is room for it.
  template <class KeepValue>
  PutOutcome put_kept(Key key, KeepValue keep_value);
  template <class KeepValue>
  PutOutcome create(Key key, std::uint64_t hash, KeepValue keep_value);
  PutOutcome overwrite(const Item& item, const Kept& value);
  // The outcome of a put that the table has carried out.
  PutOutcome put_in_table() const { return log_ ? PutOutcome::done : PutOutcome::flushed; }
  PutOutcome drained(PutOutcome outcome) const;
  bool begin_to_grow();
  TableBounds bounds() const;
  void check_change(const TableChange& change) const;
  // The table's root followed by the data of the log.
  Bytes root_size() const { return sizeof(TableRoot) + (log_ ? log_->size() : 0); }
  void reconstitute();
  void recover_by_log();
  // Visits all objects in the heap, according to persistent memory.
  template <class Visit>
  void for_each_object(Visit visit) const;

  Memory memory_;
  Shape shape_;
  std::unique_ptr<ChangeLog> log_;
  ByteRange root_;
  PoolHeap heap_;
  std::optional<Table> table_;
  std::uint32_t segments_opened_ = 0;   // the table's segments when it was opened
  mutable std::vector<std::byte> key_;  // scratch: a key that is compared or visited
};

}  // namespace perdura::systems::mcas::hstore
