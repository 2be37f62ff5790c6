// Judges replicated memory after a failure of a primary that had no complete copy: what was
// acknowledged is there, but perhaps a part of a sync point that was under way, as without any
// copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "services/judge.h"
#include "services/memory/specification.h"

namespace perdura::services {

// The version that is read from a cell whose words differ.
inline constexpr std::uint64_t kTornCell = ~std::uint64_t{0};

// The verdict of judge_history() on a history with `cells` cells, each judged as if sync points of
// its own stored to it. A cell may be torn if sync points without an answer store to it.
Verdict judge_cells(std::span<const ClientCall<MemorySpecification::Operation>> calls,
                    std::size_t cells, std::uint32_t inspector, std::span<const Time> failures,
                    const std::string& problem, const ToJudge& judged);

}  // namespace perdura::services
