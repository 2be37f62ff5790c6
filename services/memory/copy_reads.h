// What readers of a copy of replicated memory may see, if all that was acknowledged is durable: it
// may be old, but it is the outcome of sync points, those of a thread in their order, and what was
// seen stays. Linearizability as in services/judge.h says less of them, since to a copy no sync
// point has ended when it is acknowledged, and takes exponential time then.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "services/judge.h"
#include "services/memory/specification.h"

namespace perdura::services {

// The sync points and the reads of a history; each thread stores to cells of its own, `cells` of
// them, those of thread 0 first. Empty if the reads could be; else the first that could not.
std::string impossible_read(std::span<const ClientCall<MemorySpecification::Operation>> syncs,
                            std::span<const ClientCall<MemorySpecification::Operation>> reads,
                            std::uint32_t threads, std::size_t cells);

}  // namespace perdura::services
