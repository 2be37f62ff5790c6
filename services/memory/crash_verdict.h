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

// What has gone wrong for the copies in the whole run.
struct MemoryLosses {
  bool any_copy = false;        // has been given up
  bool one_of_several = false;  // has been, so what was seen only there may be lost
  bool failed_alone = false;    // the primary, when it had no complete copy
  // A copy has taken the primary's place before the inspection: what another one had of sync points
  // that nobody had acknowledged was replaced by what that one had.
  bool moved = false;
};

// A history, as its observers know it.
struct MemoryCrashHistory {
  using Operation = MemorySpecification::Operation;

  MemorySpecification specification{};
  std::uint32_t threads = 0;    // of the application
  std::uint32_t inspector = 0;  // its client number
  std::vector<ClientCall<Operation>> calls{};
  // By node: what the reader of its copy saw.
  std::vector<std::vector<ClientCall<Operation>>> seen{};
  NodeId inspected = 0;
  std::string problem{};
  MemoryLosses losses{};
};

// `failures` are those of the primary.
CrashVerdict judge_memory(const MemoryCrashHistory& history, std::span<const Time> failures,
                          const CrashLevels& levels);
// The same if the inspected copy gets sync points in the background: it may lack the last ones, as
// if a failure at each of these times had taken them. It must have those before them, each as a
// whole, and nothing else.
CrashVerdict judge_lagging_copy(const MemoryCrashHistory& history, std::span<const Time> failures,
                                const CrashLevels& levels);

// What clients and the inspector called (CrashScenario::calls()).
std::vector<CrashCall> calls_of(const MemoryCrashHistory& history);

}  // namespace perdura::services
