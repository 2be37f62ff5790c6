// Judges a history of replicated memory with failures: what was found at the end, and what readers
// of the copies saw meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "services/crash.h"
#include "services/judge.h"
#include "services/memory/specification.h"

namespace perdura::services {

// Events of the whole run after which less may be expected of the copies.
struct MemoryLosses {
  bool any_copy = false;        // a copy has been given up
  bool one_of_several = false;  // so has one of several; what was seen only there may be lost
  bool failed_alone = false;    // the primary has failed when it had no complete copy
  // A copy has taken the primary's place before the inspection. On other copies, sync points that
  // nobody had acknowledged were replaced by those that this one had.
  bool moved = false;
};

// A history, as its observers know it.
struct MemoryCrashHistory {
  using Operation = MemorySpecification::Operation;

  MemorySpecification specification{};
  std::uint32_t threads = 0;    // the application's
  std::uint32_t inspector = 0;  // the inspector's client number
  std::vector<ClientCall<Operation>> calls{};
  // By node: what the reader of its copy saw.
  std::vector<std::vector<ClientCall<Operation>>> seen{};
  NodeId inspected = 0;
  std::string problem{};
  MemoryLosses losses{};
};

// `failures` are those of the primary.
Verdict judge_memory(const MemoryCrashHistory& history, std::span<const Time> failures,
                     const ToJudge& judged);
// The same if the inspected copy gets sync points in the background: it may lack the last ones, as
// if a failure at each of these times had taken them. It must have those before them, each as a
// whole, and nothing else.
Verdict judge_lagging_copy(const MemoryCrashHistory& history, std::span<const Time> failures,
                           const ToJudge& judged);

}  // namespace perdura::services
