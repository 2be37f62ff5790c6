// The log: a ring of slots in persistent memory, with volatile metadata of the server about each
// slot's record.
//
// Positions increase monotonically. Position p is slot p mod slots, and belongs to lap p / slots.
//
//        replay start          applied               tail            replay start + slots
//   -----+---------------------+---------------------+---------------+------>  positions
//        | applied and durable | not yet applied     | free          |
//
// Recovery replays the records that verify, from the replay start on, for one lap. The replay start
// is persistent. It advances only once for each quarter of the log, or on demand. A slot is reused
// only after the replay start has passed it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "platform/pmem/region.h"
#include "services/kv/kv.h"
#include "systems/write_ahead/pool.h"

namespace perdura::systems::write_ahead {

using Position = std::uint64_t;
inline constexpr Position kNoPosition = ~Position{0};

// Space reserved for a new key's object and hash entry, from the admission of its put until it is
// applied, so that applying cannot fail.
struct Room {
  hopscotch::Bucket bucket = 0;
  std::uint32_t object = 0;
};

struct LogEntry {
  enum class State : std::uint8_t {
    reserved,  // allocated; whether the record is complete is unknown
    verified,  // complete, and durable in the log
    dropped,   // must never be applied
  };
  State state = State::dropped;
  std::uint16_t key_length = 0;
  std::uint32_t value_length = 0;
  std::uint32_t owner = 0;  // number of the session
  std::uint64_t key_hash = 0;
  std::uint64_t word_before = 0;  // first word of the slot when it was allocated
  Position older = kNoPosition;   // next in the same chain of the index
  std::optional<Room> room;
};

class Log {
 public:
  // An empty log that begins at the persistent replay start.
  Log(pmem::Region& pool, const Shape& shape);

  std::uint64_t slots() const { return shape_.log_slots; }
  std::uint64_t slot(Position p) const { return p % shape_.log_slots; }
  std::uint64_t lap(Position p) const { return p / shape_.log_slots; }
  std::uint64_t quarter() const { return shape_.log_slots < 8 ? 1 : shape_.log_slots / 4; }
  Bytes offset(Position p) const { return shape_.log_offset() + slot(p) * shape_.log_slot_size(); }

  Position replay_start() const { return replay_start_; }
  Position applied() const { return applied_; }
  Position tail() const { return tail_; }
  bool full() const { return tail_ - replay_start_ == slots(); }
  bool pending() const { return applied_ != tail_; }

  LogEntry& at(Position p) { return entries_[slot(p)]; }
  kv::Key key(Position p) const;

  // Registers the record of this key that the next slot holds, or will hold. The log must not be
  // full.
  LogEntry& append(kv::Key key, std::uint32_t value_length, LogEntry::State state,
                   std::uint32_t owner);
  // Registers the next slot as empty.
  void skip();
  // Registers that the first record not yet applied has now been applied, durably.
  void advance();
  // Moves the replay start to the first record not yet applied, or, during recovery, to `p`.
  void reclaim();
  void move_replay_start(Position p);

  // The newest position of the key at or after the replay start, and the next older one.
  Position newest(kv::Key key) const;
  Position older(Position p) const;

  // After recovery: continues with the next lap, in which no record left in the log verifies.
  void restart();

 private:
  Position first_of(Position chain, std::uint64_t hash, kv::Key key) const;
  Position& head(std::uint64_t hash) { return heads_[hash & (heads_.size() - 1)]; }

  pmem::Region& pool_;
  Shape shape_;
  Position replay_start_;
  Position applied_;
  Position tail_;
  std::vector<LogEntry> entries_;
  std::vector<std::byte> keys_;  // one for each slot
  std::vector<Position> heads_;  // the newest position in each chain of the index
};

}  // namespace perdura::systems::write_ahead
