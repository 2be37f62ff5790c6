#include "program/translation_options.h"

#include <fmt/format.h>

#include "platform/base/error.h"
#include "platform/base/printable.h"
#include "program/finding_file.h"

namespace perdura::program {

std::vector<harness::Option> TranslationOptions::add_to(harness::Command& command) {
  constexpr std::uint64_t kMost = 1U << 20;
  return {command
              .option("--cache-entries", cache_entries,
                      "Translations that the NIC caches (default: 4096)")
              .whole_number(1, kMost),
          command
              .option("--cache-ways", cache_ways,
                      "Of these, how many may hold a given one (default: 4)")
              .whole_number(1, kMost)};
}

std::vector<bench::TranslationReplay> TranslationOptions::replays(
    const std::string& command, const bench::AssumedLayout& layout) const {
  if (cache_entries % cache_ways != 0) {
    throw UsageError(fmt::format("{}: --cache-entries {}: must be a multiple of --cache-ways {}",
                                 command, cache_entries, cache_ways));
  }
  std::vector<bench::TranslationReplay> all;
  for (const auto& scheme : bench::usual_schemes(cache_entries, cache_ways)) {
    all.emplace_back(scheme, layout);
  }
  return all;
}

std::optional<sim::TranslationProfile> translation_costs(const std::string& command,
                                                         const std::string& profile,
                                                         const CommandContext& context) {
  if (profile.empty()) return std::nullopt;
  const sim::Profile found = profile_named(profile, "--profile", context);
  if (found.translation) return found.translation;
  throw UsageError(
      fmt::format("{}: --profile {}: has no section [translation]; optane-connectx3 has one",
                  command, printable(profile)));
}

}  // namespace perdura::program
