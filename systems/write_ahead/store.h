// The store that the log feeds (Erda, section 5.1): the hash table and the objects, and the
// application of log records to them. It is the part of the server that Redo Logging and Read After
// Write share.
//
// A put is admitted first: either its key has an object, or space is reserved for an object and for
// its hash entry. So every acknowledged put can be applied. Records are applied in the order of
// positions. An existing object is overwritten in place, which the log makes crash-consistent; a
// new object is written first and then entered in the table. Gets search the log first.
//
// Deletes are not logged. So that recovery cannot bring a deleted key back, a delete first ensures
// that no record of the key would be replayed.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "services/kv/kv.h"
#include "systems/hopscotch/table.h"
#include "systems/write_ahead/log.h"
#include "systems/write_ahead/pool.h"
#include "systems/write_ahead/record.h"

namespace perdura::systems::write_ahead {

class Store {
 public:
  // Opens the pool `name` and recovers it, or creates it. Throws UsageError if open_pool() does, or
  // if the hash table is damaged.
  Store(Node& node, const std::string& name, std::string_view system, const Shape& shape);
  // The same for an open pool.
  Store(Pool pool, const Shape& shape);

  pmem::Region& pool() { return *pool_; }
  const Shape& shape() const { return shape_; }
  const RecordFormat& format() const { return format_; }
  Log& log() { return log_; }
  const Log& log() const { return log_; }

  // Copies the value to the beginning of `into`, which has room for the longest value; returns its
  // length.
  kv::Result<Bytes> get(kv::Key key, std::span<std::byte> into);

  // Removes a key. Returns nullopt if the caller must first wait for an incomplete record.
  std::optional<kv::Result<void>> erase(kv::Key key);

  // Reserves space for a put of this key. Nothing is reserved if the key has an object, or will
  // have one once the log is applied.
  kv::Result<std::optional<Room>> room_for(kv::Key key);

  // Checks the record at a reserved position. If it is complete, makes it durable and returns true.
  bool verify(Position p);
  // Returns the record of this length in the slot of position `p` if it has arrived completely and
  // belongs there; `p` is the log's tail or later. The record refers to scratch memory, which the
  // next call overwrites.
  std::optional<Record> arrived(Position p, Bytes length);

  // persist() makes a record that has arrived durable; invalidate() makes it unreadable for
  // recovery.
  void persist(Position p, Bytes length) { pool_->persist(log_.offset(p), length); }
  void invalidate(Position p);

  // Applies the first record not yet applied, or skips it if it was dropped. Returns false if there
  // is none, or if it is not known to be complete.
  bool apply_next();

  // After recovery: describes a contradiction in the store, as a phrase; "" if there is none. Each
  // object must be free or belong to one key.
  std::string audit() const;
  const hopscotch::Table& table() const { return table_; }
  std::uint64_t replayed() const { return replayed_; }  // records that recovery applied

 private:
  void find_objects(std::vector<bool>& used);
  void replay_log();
  void keep_deleted(std::uint64_t word);
  void replay(Position p);
  void apply(const Record& record, std::optional<Room>& room);
  void release(std::optional<Room>& room);
  bool fits(const Record& record) const {
    return record.key.size() <= shape_.max_key_size && record.value.size() <= shape_.max_value_size;
  }
  // Keys longer than the typical one have object slots of their own.
  std::vector<std::uint32_t>& free_objects(kv::Key key) {
    return key.size() <= shape_.key_size ? free_objects_ : free_long_objects_;
  }
  std::vector<std::uint32_t>& free_objects(std::uint32_t object) {
    return object < shape_.records ? free_objects_ : free_long_objects_;
  }
  void read_slot(Position p, Bytes length) { pool_->read(log_.offset(p), scratch(length)); }
  std::span<std::byte> scratch(Bytes length) { return std::span(scratch_).first(length); }
  std::span<const std::byte> scratch_bytes(Bytes from, Bytes length) const {
    return std::span(scratch_).subspan(from, length);
  }
  bool holds_key(const ObjectAddress& object, kv::Key key);

  std::unique_ptr<pmem::Region> pool_;
  Shape shape_;
  RecordFormat format_;
  hopscotch::Table table_;
  Log log_;
  std::vector<std::uint32_t> free_objects_;
  std::vector<std::uint32_t> free_long_objects_;
  std::vector<std::byte> scratch_;
  std::uint64_t replayed_ = 0;
};

}  // namespace perdura::systems::write_ahead
