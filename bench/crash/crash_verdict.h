// Which guarantees one run kept.
#pragma once

#include <string>

#include "harness/history/history.h"

namespace perdura::bench {

struct CrashVerdict {
  // Why not, in lines of which the last names the key; empty if it was kept.
  std::string durable;
  std::string acknowledged;
  std::string observed;
  std::string ordered;
  std::string atomic;
};

// `history` is what clients did; the operations of `reader` began after the failure, and it has
// read every key. `problem`: why it could not, if so.
CrashVerdict judge_crash(const history::History& history, Time failed_at, std::uint32_t reader,
                         const std::string& problem);

}  // namespace perdura::bench
