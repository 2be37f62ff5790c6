// The store behind the log (Erda, section 5.1): hash table and objects, and how records of the log
// come to them. What Redo Logging and Read After Write have in common on the server.
//
// A put is admitted first: its key either has an object, or room is kept for one and for its hash
// entry. So what has been acknowledged can always be applied. It is applied in the order of
// positions: an existing object is overwritten in place, which the log makes safe; a new one is
// written and then entered in the table. Reading looks in the log first.
//
// Deletes are not logged. So that recovery cannot bring a key back, a delete first sees to it that
// no record of the key would be replayed.
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
  // Opens the pool `name` and recovers it, or creates it. Throws UsageError.
  Store(Node& node, const std::string& name, std::string_view system, const Shape& shape);
  // The same for a pool that is open already.
  Store(Pool pool, const Shape& shape);

  pmem::Region& pool() { return *pool_; }
  const Shape& shape() const { return shape_; }
  const RecordFormat& format() const { return format_; }
  Log& log() { return log_; }
  const Log& log() const { return log_; }

  // Copies the value to the beginning of `into`, which has room for the longest, and returns its
  // length.
  Result<Bytes> get(Key key, std::span<std::byte> into);

  // Removes a key. Nothing, if a record that is not complete yet must be waited for first.
  std::optional<Result<void>> erase(Key key);

  // Room for a put of this key: none is needed if an object exists, or will when the log is
  // applied.
  Result<std::optional<Room>> room_for(Key key);

  // Checks whether a reserved position's record is complete by now. It is made durable if it is.
  bool verify(Position p);
  // The record of this length that arrived in the slot of the log's tail or later, if it is
  // complete and belongs there; in scratch memory until the next call.
  std::optional<Record> arrived(Position p, Bytes length);

  // Makes a record that arrived durable, or unreadable for recovery.
  void persist(Position p, Bytes length) { pool_->persist(log_.offset(p), length); }
  void invalidate(Position p);

  // Applies (or passes over, if it was dropped) the first record not yet applied; false if there is
  // none, or it is not complete as far as is known.
  bool apply_next();

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
  // Objects of keys that are longer than the typical one have slots of their own.
  std::vector<std::uint32_t>& free_objects(Key key) {
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
  bool holds_key(const ObjectAddress& object, Key key);

  std::unique_ptr<pmem::Region> pool_;
  Shape shape_;
  RecordFormat format_;
  hopscotch::Table table_;
  Log log_;
  std::vector<std::uint32_t> free_objects_;
  std::vector<std::uint32_t> free_long_objects_;
  std::vector<std::byte> scratch_;
};

}  // namespace perdura::systems::write_ahead
