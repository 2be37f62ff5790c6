// How a simulated NIC finds memory: a table in the memory of its host says where each page (or each
// range) of what is registered is, and the NIC caches entries of it, which is called its pin-down
// cache. An access whose entry is not cached waits until the NIC has read it ("Building Distributed
// Systems with Non-Volatile Main Memories and RDMA Networks", section 2.4.2 and chapter 5).
//
// The cache is set-associative with LRU replacement in each set, as in the emulation there (section
// 5.2) and in real translation caches; consecutive pages map to consecutive sets. The profile
// limits how many entries are read at the same time; further reads wait.
#pragma once

#include <cstdint>
#include <vector>

#include "platform/base/units.h"
#include "platform/sim/kernel/profile.h"

namespace perdura::fabric::sim {

class TranslationCache {
 public:
  // Names an entry: its table and its number there.
  struct TranslationId {
    std::uint64_t table = 0;
    std::uint64_t number = 0;
    friend bool operator==(const TranslationId&, const TranslationId&) = default;
  };

  explicit TranslationCache(const perdura::sim::TranslationProfile& profile);

  const perdura::sim::TranslationProfile& profile() const { return profile_; }
  // The time at which an entry that is needed at `at` is available.
  Time find(Time at, TranslationId id);
  // Invalidates the entries from `first` to `last` of a table, which have changed.
  void forget(std::uint64_t table, std::uint64_t first, std::uint64_t last);

  std::uint64_t hits() const { return hits_; }
  std::uint64_t misses() const { return misses_; }

 private:
  struct CachedTranslation {
    TranslationId id{};
    std::uint64_t used = 0;  // 0: free
    Time filled{};           // when the NIC has read it
  };
  CachedTranslation* set_of(const TranslationId& id);

  const perdura::sim::TranslationProfile& profile_;
  std::vector<CachedTranslation> cached_;  // a set's are adjacent
  std::vector<Time> reading_;              // when each of the reads that can be in flight ends
  std::uint64_t uses_ = 0;
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
};

}  // namespace perdura::fabric::sim
