// The recovery of a level hash table after a crash or a restart.
#include <fmt/core.h>

#include "platform/base/error.h"
#include "systems/level/index.h"

namespace perdura::systems::level {

void Index::recover() {
  const State state = State::from(load_word(kStateOffset));
  if (state.bottom + (state.resizing ? 1 : 0) > geometry_.resizes) {
    throw UsageError(
        fmt::format("the hash table of pool '{}' is damaged: it was resized {} times; "
                    "remove the pool",
                    region_.name(), state.bottom));
  }
  set_state(state);
  for (LogNumber log = 0; log < geometry_.logs; ++log) recover_log(log);
  std::uint64_t items = 0;
  for (std::uint32_t number = state.bottom; number <= last_level(); ++number) {
    const Level& level = levels_[number];
    for (std::uint64_t bucket = 0; bucket < level.buckets; ++bucket) {
      items += recover_bucket(level, bucket);
    }
  }
  items_.store(items, std::memory_order_relaxed);
  if (!state.resizing) return;
  ++recovered_.resizes;
  next_bucket_ = 0;
  while (resize_step()) {
  }
}

void Index::recover_log(LogNumber log) {
  const std::uint64_t position = load_word(log_position_offset(log));
  if (position >= kLogEntries) {
    throw UsageError(
        fmt::format("log {} of pool '{}' is damaged: it is at entry {} of {}; remove the pool", log,
                    region_.name(), position, kLogEntries));
  }
  logs_[log].position = position;
  for (std::uint64_t number = 0; number < kLogEntries; ++number) {
    const Bytes offset = log_entry_offset(log, number);
    const auto entry = region_.read_object<LogEntry>(offset_ + offset);
    if (entry.mark == 0) continue;
    if (!is_slot(entry.offset)) {
      throw UsageError(
          fmt::format("log {} of pool '{}' is damaged: entry {} is for a slot that does not "
                      "exist; remove the pool",
                      log, region_.name(), number));
    }
    ++recovered_.overwrites;
    region_.write_object(offset_ + entry.offset, entry.item);
    persist(entry.offset, kSlotSize);
    const Bytes mark = offset + offsetof(LogEntry, mark);
    store_word(mark, 0);
    persist(mark, kWord);
  }
}

bool Index::is_slot(std::uint64_t offset) const {
  const Bytes begin = bottom_level().offset;
  if (offset < begin || offset >= levels_[last_level()].end()) return false;
  const Bytes in_bucket = (offset - begin) % kBucketSize;
  return in_bucket >= kHeaderSize && (in_bucket - kHeaderSize) % kSlotSize == 0;
}

// Returns the number of items that remain in the bucket. Deletes an item if its copy exists where
// it was about to be moved. Corrects a check that a crash left stale.
std::uint64_t Index::recover_bucket(const Level& level, std::uint64_t bucket) {
  const Bytes offset = level.bucket_offset(bucket);
  const Tokens found = load_tokens(offset);
  Tokens tokens = found;
  std::uint64_t check = 0;
  for_each_in(offset, [&](SlotNumber slot, const Slot& item) {
    const Hashes hashes = Hashes::of(item);
    const auto copy = bucket_of_copy(level, bucket, hashes);
    if (copy && find_in_bucket(*copy, KeyWords::of(item), hashes.tag())) {
      tokens = without_item(tokens, slot);
      if (!resizing()) ++recovered_.movements;
    } else {
      check ^= check_term(slot, item);
    }
  });
  if (tokens != found) {
    store_tokens(offset, tokens);
    persist(offset + kTokensOffset, kWord);
  }
  check ^= check_term(tokens);
  if (load_check(offset) != check) store_check(offset, check);
  return count_items(tokens);
}

// During a resize no item moves within a level.
std::optional<Bytes> Index::bucket_of_copy(const Level& level, std::uint64_t bucket,
                                           const Hashes& key) const {
  const Side side = level.side_of(bucket);
  if (resizing()) {
    if (level.offset != bottom_level().offset) return std::nullopt;
    return next_top_level().candidate_offset(key, side);
  }
  if (side == Side::second) return std::nullopt;
  return level.candidate_offset(key, Side::second);
}

}  // namespace perdura::systems::level
