// Checks the reads of a copy of replicated memory, if all that was acknowledged is durable. What is
// read may be old, but it is the outcome of sync points, those of a thread in their order, and what
// was seen stays. Linearizability as in services/judge.h would say less, since to a copy no sync
// point has ended when it is acknowledged, and would take exponential time then.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "services/judge.h"
#include "services/memory/specification.h"

namespace perdura::services {

// Checks the sync points and the reads of a history. Each of `threads` threads stores to `cells`
// cells of its own, those of thread 0 first. Returns a text on the first read that is impossible;
// empty if there is none.
std::string impossible_read(std::span<const ClientCall<MemorySpecification::Operation>> syncs,
                            std::span<const ClientCall<MemorySpecification::Operation>> reads,
                            std::uint32_t threads, std::size_t cells);

}  // namespace perdura::services
