// What goes wrong on a thread's way to the fabric, and how often: a line of text that replays it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "platform/base/units.h"
#include "platform/fabric/types.h"

namespace perdura::faults {

// A time chosen at random, from least to most.
struct TimeRange {
  Picoseconds least{};
  Picoseconds most{};
  friend bool operator==(const TimeRange&, const TimeRange&) = default;
};

// Where an operation is when its thread's node dies.
enum class DeathStep : std::uint8_t {
  before_post,    // nothing of it has left
  after_post,     // `die_after` later; by then it may or may not have taken effect
  at_completion,  // it has taken effect, and nobody hears of it; if unsignaled, as after_post
};

// Operations are counted from 1, over all connections of the endpoint. Probabilities are 0 to 1.
struct FaultPlan {
  std::uint64_t seed = 1;

  double lose = 0;            // probability that an operation finds its connection breaking
  std::uint64_t lose_at = 0;  // the operation that does so for certain; 0 is none

  double hold = 0;  // probability that a message (SEND, WRITE with immediate) is held back
  TimeRange held{};
  double duplicate = 0;  // probability that a SEND is sent twice

  TimeRange slow{};  // that every operation takes before it is posted

  std::uint64_t die_at = 0;  // the operation at which the node dies; 0 is never
  DeathStep die_when = DeathStep::before_post;
  Picoseconds die_after{};

  // Such as "seed=7 hold=0.5 held=1us..50us die-at=3 die-when=after-post die-after=800ns": names of
  // whatever is not as above; times in ps, ns, us or ms.
  std::string text() const;
  // The reverse. Throws UsageError that names the word.
  static FaultPlan parse(std::string_view text);
  friend bool operator==(const FaultPlan&, const FaultPlan&) = default;
};

}  // namespace perdura::faults
