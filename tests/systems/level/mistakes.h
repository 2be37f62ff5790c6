// Mistakes that an index for level hashing could make, as changes of its steps, for tests that they
// are noticed. The index has one log.
#pragma once

#include "tests/systems/bucket_hash/steps.h"
#include "tests/systems/level/support.h"

namespace perdura::systems::level::test {

using perdura::test::Operation;
using perdura::test::Step;
using perdura::test::Steps;

// --- what a step is of ---------------------------------------------------------------------------

inline const Bytes kLevelsBegin = Geometry{}.levels_offset();

inline bool is_in_levels(const Step& step) { return step.offset >= kLevelsBegin; }
inline Bytes in_bucket(const Step& step) { return (step.offset - kLevelsBegin) % kBucketSize; }

inline bool is_log(const Step& step) {
  return !is_in_levels(step) && step.offset >= log_position_offset(0);
}
inline bool is_mark(const Step& step) {
  return is_log(step) && step.offset % kCacheLine == offsetof(LogEntry, mark);
}
inline bool is_tokens(const Step& step) {
  return is_in_levels(step) && in_bucket(step) == kTokensOffset;
}
inline bool is_check(const Step& step) {
  return is_in_levels(step) && in_bucket(step) == kCheckOffset;
}
inline bool is_slot(const Step& step) {
  return is_in_levels(step) && in_bucket(step) >= kHeaderSize;
}

// The tokens that a store sets and clears.
inline Tokens set_by(const Step& step) { return step.word() & ~step.word_before() & kTokenBits; }
inline Tokens cleared_by(const Step& step) {
  return step.word_before() & ~step.word() & kTokenBits;
}
inline bool is_update(const Step& step) {
  return step.is_write() && is_tokens(step) && set_by(step) != 0 && cleared_by(step) != 0;
}
inline bool is_delete(const Step& step) {
  return step.is_write() && is_tokens(step) && set_by(step) == 0 && cleared_by(step) != 0;
}
// With the item that an update deletes.
inline Step with_both(const Step& update) {
  Tokens tokens = update.word();
  for (SlotNumber slot = 0; slot < kBucketSlots; ++slot) {
    if ((cleared_by(update) & field_of(slot)) != 0) {
      tokens |= update.word_before() & field_of(slot);
    }
  }
  return Step::write_word(update.offset, tokens);
}

// --- mistakes ------------------------------------------------------------------------------------

// Makes the first delete of an operation its first change.
inline Steps delete_first(Steps steps) {
  const auto begin = std::ranges::find_if(steps, is_delete);
  const auto end = perdura::test::end_of_change(begin, steps.end(), is_check);
  const bool seals = !steps.empty() && is_tokens(steps.front()) &&
                     (steps.front().word() & ~steps.front().word_before()) == kSealed;
  auto first = steps.begin();
  if (seals) first = std::find_if_not(first + 1, begin, is_check);
  std::rotate(first, begin, end);
  return steps;
}
// An insert that has to move an item deletes it before it copies it.
inline Steps moves_by_deleting_first(Operation operation, Steps steps, const Image&) {
  return operation == Operation::put ? delete_first(std::move(steps)) : steps;
}
// A resize deletes the items of a bucket before it copies them.
inline Steps deletes_before_it_inserts(Operation operation, Steps steps, const Image&) {
  return operation == Operation::resize ? delete_first(std::move(steps)) : steps;
}

inline Steps does_not_seal(Operation operation, Steps steps, const Image&) {
  if (operation != Operation::resize || !is_tokens(steps.front())) return steps;
  const Bytes bucket = steps.front().offset;
  steps.erase(steps.begin(), std::find_if_not(steps.begin() + 1, steps.end(), is_check));
  Tokens sealed = 0;  // until the check of these tokens is stored
  for (Step& step : steps) {
    if (!step.is_write()) continue;
    if (step.offset == bucket) {
      sealed = step.word();
      step = Step::write_word(bucket, sealed & ~kSealed);
    } else if (is_check(step) && sealed != 0) {
      const std::uint64_t terms = check_term(sealed) ^ check_term(sealed & ~kSealed);
      step = Step::write_word(step.offset, step.word() ^ terms);
      sealed = 0;
    }
  }
  return steps;
}
inline Steps seals_too_late(Operation operation, Steps steps, const Image& memory) {
  if (operation != Operation::resize || !is_tokens(steps.front())) return steps;
  const Steps unsealed = does_not_seal(operation, steps, memory);
  // The last tokens and the last check of the bucket.
  const Bytes bucket = steps.front().offset;
  Steps sealing = std::move(steps);
  std::erase_if(sealing, [&](const Step& step) {
    return !step.is_write() ||
           (step.offset != bucket && step.offset != bucket - kTokensOffset + kCheckOffset);
  });
  return perdura::test::joined(unsealed, Steps(sealing.end() - 2, sealing.end()));
}

}  // namespace perdura::systems::level::test
