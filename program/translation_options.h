// Options of commands that count the translations of a NIC: of its cache, and of times.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/trace/translation_replay.h"
#include "program/commands.h"

namespace perdura::program {

struct TranslationOptions {
  std::uint32_t cache_entries = 4096;
  std::uint32_t cache_ways = 4;

  std::vector<harness::Option> add_to(harness::Command& command);
  // One for each usual scheme. Throws UsageError if the options contradict each other. `command`:
  // the name of the command, for errors.
  std::vector<bench::TranslationReplay> replays(const std::string& command,
                                                const bench::AssumedLayout& layout = {}) const;
};

// The constants of a profile; nullopt if `profile` is empty. Throws UsageError if it has none.
std::optional<sim::TranslationProfile> translation_costs(const std::string& command,
                                                         const std::string& profile,
                                                         const CommandContext& context);

}  // namespace perdura::program
