#include "platform/fabric/sim/translation.h"

#include <algorithm>

#include "platform/sim/kernel/virtual_time.h"

namespace perdura::fabric::sim {
namespace {

// Spreads the tables, so that each one begins in an unrelated set of the cache.
std::uint64_t scattered(std::uint64_t number) {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15;
  number *= kFactor;
  return (number ^ number >> 32) * kFactor >> 40;
}

}  // namespace

TranslationCache::TranslationCache(const perdura::sim::TranslationProfile& profile)
    : profile_(profile), cached_(profile.cache_entries), reading_(profile.misses_under_way) {}

TranslationCache::CachedTranslation* TranslationCache::set_of(const TranslationId& id) {
  const std::size_t sets = cached_.size() / profile_.cache_ways;
  return &cached_[(id.number + scattered(id.table)) % sets * profile_.cache_ways];
}

Time TranslationCache::find(Time at, TranslationId id) {
  CachedTranslation* const set = set_of(id);
  CachedTranslation* oldest = set;
  for (CachedTranslation* cached = set; cached != set + profile_.cache_ways; ++cached) {
    if (cached->used != 0 && cached->id == id) {
      ++hits_;
      cached->used = ++uses_;
      return std::max(at, cached->filled);
    }
    if (cached->used < oldest->used) oldest = cached;
  }
  ++misses_;
  Time& free = *std::min_element(reading_.begin(), reading_.end());
  free = perdura::sim::limited(std::max(at, free) + profile_.miss);
  *oldest = {id, ++uses_, free};
  return free;
}

void TranslationCache::forget(std::uint64_t table, std::uint64_t first, std::uint64_t last) {
  for (CachedTranslation& cached : cached_) {
    if (cached.id.table == table && cached.id.number >= first && cached.id.number <= last) {
      cached = {};
    }
  }
}

}  // namespace perdura::fabric::sim
