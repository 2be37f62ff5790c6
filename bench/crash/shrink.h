// Makes the tape of a failing run simpler as long as the run still fails, so that what is left is
// what the failure needs: first fewer clients, failures and stalls (whole streams of
// bench/crash/generated_run.h), then fewer operations, then smaller delays, earlier times and fewer
// lost lines.
#pragma once

#include <cstdint>
#include <functional>

#include "platform/pmem/model/tape.h"

namespace perdura::bench {

struct Shrunk {
  pmem::Tape::Streams tape;
  std::uint64_t runs = 0;
};

// `fails`: runs with this tape and says whether the run fails in the way that is to be kept; it
// must return true for `tape`. Ends when no single step makes the tape simpler, or after
// `most_runs`.
Shrunk shrink(pmem::Tape::Streams tape,
              const std::function<bool(const pmem::Tape::Streams&)>& fails,
              std::uint64_t most_runs);

}  // namespace perdura::bench
