#include "platform/fabric/sim/translation.h"

#include <algorithm>

#include "platform/sim/kernel/virtual_time.h"

namespace perdura::fabric::sim {

TranslationCache::TranslationCache(const perdura::sim::TranslationProfile& profile)
    : profile_(profile),
      cached_(profile.cache_entries, profile.cache_ways),
      filled_(profile.cache_entries),
      reading_(profile.misses_under_way) {}

Time TranslationCache::find(Time at, TranslationId id) {
  const PinDownCache::Access access = cached_.access(id);
  Time& filled = filled_[access.slot];
  if (access.hit) return std::max(at, filled);
  Time& free = *std::min_element(reading_.begin(), reading_.end());
  free = perdura::sim::limited(std::max(at, free) + profile_.miss);
  filled = free;
  return free;
}

}  // namespace perdura::fabric::sim
