// The log: a ring of slots in persistent memory, and the server's volatile notes on what is in
// them.
//
// Positions are numbered on for ever: position p is slot p mod slots, its lap is p / slots.
//
//        replay start          applied               tail            replay start + slots
//   -----+---------------------+---------------------+---------------+------>  positions
//        | applied and durable | not yet applied     | free          |
//
// Recovery replays what verifies from the replay start on, for one lap; the replay start is
// persistent and moves only once per quarter of the log, or when somebody needs it. A slot is used
// again only when the replay start is beyond it.
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

// Where a new key's object and hash entry will be: kept free from when its put is admitted until it
// is applied, so that applying cannot fail.
struct Room {
  hopscotch::Bucket bucket = 0;
  std::uint32_t object = 0;
};

struct LogEntry {
  enum class State : std::uint8_t {
    reserved,  // handed out; whether the record is complete is not known
    verified,  // complete, and durable in the log
    dropped,   // never to be applied
  };
  State state = State::dropped;
  std::uint16_t key_length = 0;
  std::uint32_t value_length = 0;
  std::uint32_t owner = 0;  // session
  std::uint64_t key_hash = 0;
  std::uint64_t word_before = 0;  // the first word of the slot when it was handed out
  Position older = kNoPosition;   // of the same chain of the index
  std::optional<Room> room;
};

class Log {
 public:
  // An empty log from the persistent replay start on.
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
  Key key(Position p) const;

  // Notes that the next slot holds, or will hold, a record of this key. The log is not full.
  LogEntry& append(Key key, std::uint32_t value_length, LogEntry::State state, std::uint32_t owner);
  // Notes that the next slot holds nothing.
  void skip();
  // Notes that the first record not yet applied is, and is durable.
  void advance();
  // Moves the replay start to the first record not yet applied, or (in recovery) elsewhere.
  void reclaim();
  void move_replay_start(Position p);

  // The newest position at or after the replay start where the key was appended, and the one
  // before.
  Position newest(Key key) const;
  Position older(Position p) const;

  // After recovery: goes on where no record that is in the log verifies, one lap on.
  void restart();

 private:
  Position first_of(Position chain, std::uint64_t hash, Key key) const;
  Position& head(std::uint64_t hash) { return heads_[hash & (heads_.size() - 1)]; }

  pmem::Region& pool_;
  Shape shape_;
  Position replay_start_;
  Position applied_;
  Position tail_;
  std::vector<LogEntry> entries_;
  std::vector<std::byte> keys_;  // of each slot
  std::vector<Position> heads_;  // of the index's chains, newest first
};

}  // namespace perdura::systems::write_ahead
