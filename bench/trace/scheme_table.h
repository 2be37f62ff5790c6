// Shows what several schemes of translation did under the same accesses, for people and as JSON.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "bench/trace/translation_replay.h"
#include "platform/base/json.h"

namespace perdura::bench {

// Look-ups are shown if there was any access, and times if there is a profile.
std::string scheme_table(std::span<const TranslationReplay> replays,
                         const std::optional<sim::TranslationProfile>& profile);
Json scheme_json(std::span<const TranslationReplay> replays,
                 const std::optional<sim::TranslationProfile>& profile);

}  // namespace perdura::bench
