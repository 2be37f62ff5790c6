#include "bench/trace/scheme_table.h"

#include <fmt/format.h>

#include "harness/text/text_table.h"

namespace perdura::bench {
namespace {

double milliseconds(Picoseconds time) { return to_microseconds(time) / 1000; }

std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.2f} %", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace

std::string scheme_table(std::span<const TranslationReplay> replays,
                         const std::optional<sim::TranslationProfile>& profile) {
  return harness::text_table([&](const harness::AddLine& add) {
    const bool has_accesses = !replays.empty() && replays.front().counts().accesses > 0;
    std::vector<std::string> cells{"translation", "entries", "registered", "changed"};
    if (has_accesses) {
      cells.insert(cells.end(), {"look-ups", "hits", "misses", "hit rate", "visits"});
    }
    if (profile) cells.emplace_back("registering (ms)");
    if (profile && has_accesses) cells.emplace_back("misses (ms)");
    add(cells);
    for (const TranslationReplay& replay : replays) {
      const TranslationCounts counts = replay.counts();
      cells = {replay.scheme().name, std::to_string(counts.entries),
               std::to_string(counts.registered), std::to_string(counts.changed)};
      if (has_accesses) {
        for (const std::uint64_t count : {counts.look_ups, counts.hits, counts.misses}) {
          cells.push_back(std::to_string(count));
        }
        cells.push_back(percent(counts.hits, counts.look_ups));
        cells.push_back(std::to_string(counts.visits));
      }
      if (profile) {
        cells.push_back(fmt::format("{:.3f}", milliseconds(registration_time(counts, *profile))));
      }
      if (profile && has_accesses) {
        cells.push_back(fmt::format("{:.3f}", milliseconds(miss_time(counts, *profile))));
      }
      add(cells);
    }
  });
}

Json scheme_json(std::span<const TranslationReplay> replays,
                 const std::optional<sim::TranslationProfile>& profile) {
  Json all = Json::array();
  for (const TranslationReplay& replay : replays) {
    const TranslationCounts counts = replay.counts();
    const TranslationScheme& scheme = replay.scheme();
    Json each = Json::object();
    each["translation"] = scheme.name;
    each["page_bytes"] = scheme.page;
    each["has_ranges"] = scheme.has_ranges;
    each["cache_entries"] = scheme.cache_entries;
    each["cache_ways"] = scheme.cache_ways;
    each["registrations"] = counts.registrations;
    each["entries"] = counts.entries;
    each["registered"] = counts.registered;
    each["changes"] = counts.changes;
    each["changed"] = counts.changed;
    each["accesses"] = counts.accesses;
    each["look_ups"] = counts.look_ups;
    each["hits"] = counts.hits;
    each["misses"] = counts.misses;
    each["visits"] = counts.visits;
    each["in_holes"] = counts.in_holes;
    if (profile) {
      each["registration_ms"] = milliseconds(registration_time(counts, *profile));
      each["miss_ms"] = milliseconds(miss_time(counts, *profile));
    }
    all.push_back(std::move(each));
  }
  return all;
}

}  // namespace perdura::bench
