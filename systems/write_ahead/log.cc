#include "systems/write_ahead/log.h"

#include <algorithm>
#include <bit>

#include "platform/runtime/work.h"

namespace perdura::systems::write_ahead {

Log::Log(pmem::Region& pool, const Shape& shape)
    : pool_(pool),
      shape_(shape),
      replay_start_(pool.load(kReplayStartOffset)),
      applied_(replay_start_),
      tail_(replay_start_),
      entries_(shape.log_slots),
      keys_(shape.log_slots * shape.max_key_size),
      heads_(std::bit_ceil(2 * shape.log_slots), kNoPosition) {}

kv::Key Log::key(Position p) const {
  return std::span(keys_).subspan(slot(p) * shape_.max_key_size, entries_[slot(p)].key_length);
}

LogEntry& Log::append(kv::Key key, std::uint32_t value_length, LogEntry::State state,
                      std::uint32_t owner) {
  const Position p = tail_++;
  LogEntry& entry = at(p);
  entry = {};
  entry.state = state;
  entry.key_length = static_cast<std::uint16_t>(key.size());
  entry.value_length = value_length;
  entry.owner = owner;
  entry.key_hash = hash64(key);
  entry.older = std::exchange(head(entry.key_hash), p);
  copy_bytes(std::span(keys_).subspan(slot(p) * shape_.max_key_size, key.size()), key);
  return entry;
}

void Log::skip() { at(tail_++) = {}; }

void Log::advance() {
  ++applied_;
  if (applied_ - replay_start_ >= quarter()) reclaim();
}

void Log::reclaim() {
  if (replay_start_ != applied_) move_replay_start(applied_);
}

void Log::move_replay_start(Position p) {
  replay_start_ = p;
  pool_.store(kReplayStartOffset, p);
  pool_.persist(kReplayStartOffset, kWord);
}

// Chains lead from newer to older positions. They end before the replay start, since slots of older
// positions may have been reused.
Position Log::first_of(Position chain, std::uint64_t hash, kv::Key key) const {
  while (chain != kNoPosition && chain >= replay_start_) {
    const LogEntry& entry = entries_[slot(chain)];
    if (entry.key_hash == hash && equal_bytes(this->key(chain), key)) return chain;
    chain = entry.older;
  }
  return kNoPosition;
}

Position Log::newest(kv::Key key) const {
  if (tail_ == replay_start_) return kNoPosition;
  const std::uint64_t hash = hash64(key);
  return first_of(heads_[hash & (heads_.size() - 1)], hash, key);
}

Position Log::older(Position p) const {
  const LogEntry& entry = entries_[slot(p)];
  return first_of(entry.older, entry.key_hash, key(p));
}

void Log::restart() {
  move_replay_start(replay_start_ + slots());
  applied_ = replay_start_;
  tail_ = replay_start_;
  std::fill(heads_.begin(), heads_.end(), kNoPosition);
}

}  // namespace perdura::systems::write_ahead
