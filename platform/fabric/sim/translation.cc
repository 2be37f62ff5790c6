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
    : profile_(profile), places_(profile.cache_entries), reading_(profile.misses_under_way) {}

TranslationCache::Place* TranslationCache::set_of(const Entry& entry) {
  const std::size_t sets = places_.size() / profile_.cache_ways;
  return &places_[(entry.number + scattered(entry.table)) % sets * profile_.cache_ways];
}

Time TranslationCache::find(Time at, Entry entry) {
  Place* const set = set_of(entry);
  Place* oldest = set;
  for (Place* place = set; place != set + profile_.cache_ways; ++place) {
    if (place->used != 0 && place->entry == entry) {
      ++hits_;
      place->used = ++uses_;
      return std::max(at, place->filled);
    }
    if (place->used < oldest->used) oldest = place;
  }
  ++misses_;
  Time& free = *std::min_element(reading_.begin(), reading_.end());
  free = perdura::sim::limited(std::max(at, free) + profile_.miss);
  *oldest = {entry, ++uses_, free};
  return free;
}

void TranslationCache::forget(std::uint64_t table, std::uint64_t first, std::uint64_t last) {
  for (Place& place : places_) {
    if (place.entry.table == table && place.entry.number >= first && place.entry.number <= last) {
      place = {};
    }
  }
}

}  // namespace perdura::fabric::sim
