// A fault plan specifies the faults that are injected into a thread's fabric operations, and how
// often. It can be written as a line of text, which replays the faults.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "platform/base/units.h"
#include "platform/fabric/types.h"

namespace perdura::faults {

// A range from which a duration is drawn at random.
struct TimeRange {
  Picoseconds least{};
  Picoseconds most{};
  friend bool operator==(const TimeRange&, const TimeRange&) = default;
};

// How far an operation has progressed when its thread's node dies.
enum class DeathStep : std::uint8_t {
  before_post,  // nothing of it has been sent
  after_post,   // `die_after` after it was posted; it may or may not have taken effect by then
  // It has taken effect, but its completion is not reported; if unsignaled, as after_post.
  at_completion,
};

// Operations are numbered from 1, over all connections of the endpoint. Probabilities are from 0 to
// 1.
struct FaultPlan {
  std::uint64_t seed = 1;

  double lose = 0;            // probability that an operation breaks its connection
  std::uint64_t lose_at = 0;  // the operation that certainly does so; 0 is none

  double hold = 0;  // probability that a message (SEND, WRITE with immediate) is delayed by `held`
  TimeRange held{};
  double duplicate = 0;  // probability that a SEND is sent twice

  TimeRange slow{};  // delay of every operation before it is posted

  std::uint64_t die_at = 0;  // the operation at which the node dies; 0 is never
  DeathStep die_when = DeathStep::before_post;
  Picoseconds die_after{};

  // The plan as text, such as "seed=7 hold=0.5 held=1us..50us die-at=3 die-when=after-post
  // die-after=800ns". It contains all members that differ from their defaults; times are in ps, ns,
  // us or ms.
  std::string text() const;
  // Parses such a text. Throws UsageError, which names the wrong word.
  static FaultPlan parse(std::string_view text);
  friend bool operator==(const FaultPlan&, const FaultPlan&) = default;
};

}  // namespace perdura::faults
