// What is left of replicated memory after a failure of a primary that had no complete copy: what
// was acknowledged, but perhaps a part of a sync point that was under way, as without any copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "services/judge.h"
#include "services/memory/specification.h"

namespace perdura::services {

// What a cell is found to hold if its words differ.
inline constexpr std::uint64_t kTornCell = ~std::uint64_t{0};

// The verdict of judge_history() on a history with `cells` cells, each of them judged as if it were
// stored to by sync points of its own. A cell that sync points without an answer store to may be
// torn.
CrashVerdict judge_cells(std::span<const ClientCall<MemorySpecification::Operation>> calls,
                         std::size_t cells, std::uint32_t inspector, std::span<const Time> failures,
                         const std::string& problem, const CrashLevels& levels);

}  // namespace perdura::services
