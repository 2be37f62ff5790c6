// How a simulated NIC finds memory: a table in the memory of its host says where each page (or each
// range) of what is registered is, and the NIC caches entries of it
// (platform/fabric/translation/pin_down_cache.h). An access whose entry is not cached waits until
// the NIC has read it ("Building Distributed Systems with Non-Volatile Main Memories and RDMA
// Networks", section 2.4.2 and chapter 5).
//
// The profile limits how many entries are read at the same time; further reads wait.
#pragma once

#include <cstdint>
#include <vector>

#include "platform/base/units.h"
#include "platform/fabric/translation/pin_down_cache.h"
#include "platform/sim/kernel/profile.h"

namespace perdura::fabric::sim {

class TranslationCache {
 public:
  explicit TranslationCache(const perdura::sim::TranslationProfile& profile);

  const perdura::sim::TranslationProfile& profile() const { return profile_; }
  // The time at which an entry that is needed at `at` is available.
  Time find(Time at, TranslationId id);
  // Invalidates entries that have changed: one, those from `first` to `last` of a table, all of it.
  void forget(const TranslationId& id) { cached_.forget(id); }
  void forget(std::uint64_t table, std::uint64_t first, std::uint64_t last) {
    cached_.forget(table, first, last);
  }
  void forget_table(std::uint64_t table) { cached_.forget_table(table); }

  std::uint64_t hits() const { return cached_.hits(); }
  std::uint64_t misses() const { return cached_.misses(); }

 private:
  const perdura::sim::TranslationProfile& profile_;
  PinDownCache cached_;
  std::vector<Time> filled_;   // when the NIC has read the entry of each slot
  std::vector<Time> reading_;  // when each of the reads that can be in flight ends
};

}  // namespace perdura::fabric::sim
