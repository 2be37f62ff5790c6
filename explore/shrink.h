// Makes the tape of a failing run simpler as long as the run still fails, so that what is left is
// what the failure needs: first fewer clients, failures and stalls (whole streams of
// explore/generated_run.h), then fewer operations, then smaller delays, earlier times and fewer
// lost lines. When none of these steps makes the tape simpler anymore, it leaves out operations
// and at the same time draws anew when failures happen and what they lose, since a shorter run
// fails at another crash point.
#pragma once

#include <cstdint>
#include <functional>

#include "platform/pmem/model/tape.h"

namespace perdura::explore {

struct Shrunk {
  pmem::Tape::Streams tape;
  std::uint64_t runs = 0;
  bool stopped = false;  // `stop` has ended it
};

struct ShrinkLimits {
  std::uint64_t most_runs = 0;
  // Asked before each run; when it says true, what has been reached so far is the result. May be
  // null.
  std::function<bool()> stop{};
};

// `fails`: runs with this tape and says whether the run fails in the way that is to be kept; it
// must return true for `tape`, which holds all choices of its run. Ends when no step makes the tape
// simpler, or at the limits.
Shrunk shrink(pmem::Tape::Streams tape,
              const std::function<bool(const pmem::Tape::Streams&)>& fails,
              const ShrinkLimits& limits);

}  // namespace perdura::explore
