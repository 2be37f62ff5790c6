// Judges which guarantees a history of keys and values kept.
#pragma once

#include <span>
#include <string>

#include "services/crash.h"
#include "services/kv/history/history.h"

namespace perdura::services {

// `history` holds the operations of all clients. Those of `reader` began after the last of
// `failures`, of which there is at least one, and it has read every key. `problem` is empty, or
// says why it could not.
Verdict judge_crash(const history::History& history, std::span<const Time> failures,
                    std::uint32_t reader, const std::string& problem,
                    const ToJudge& judged = ToJudge::all());

}  // namespace perdura::services
