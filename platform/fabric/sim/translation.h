// How a simulated NIC finds memory: a table in the memory of its host says where each page (or each
// range) of what is registered is, and the NIC caches entries of it, which is called its pin-down
// cache. An access whose entry is not cached waits until the NIC has read it ("Building Distributed
// Systems with Non-Volatile Main Memories and RDMA Networks", section 2.4.2 and chapter 5).
//
// The cache is set-associative and drops the entry of a set that was used longest ago, as the
// emulation there (section 5.2) and real translation caches; entries of pages that follow one
// another go to sets that do. Entries are read several at a time, at most so many as the profile
// says, the others wait.
#pragma once

#include <cstdint>
#include <vector>

#include "platform/base/units.h"
#include "platform/sim/kernel/profile.h"

namespace perdura::fabric::sim {

class TranslationCache {
 public:
  // Of which table an entry is, and which one there.
  struct Entry {
    std::uint64_t table = 0;
    std::uint64_t number = 0;
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  explicit TranslationCache(const perdura::sim::TranslationProfile& profile);

  const perdura::sim::TranslationProfile& profile() const { return profile_; }
  // When an entry that is needed at `at` is there.
  Time find(Time at, Entry entry);
  // Entries from number `first` to `last` of a table have changed.
  void forget(std::uint64_t table, std::uint64_t first, std::uint64_t last);

  std::uint64_t hits() const { return hits_; }
  std::uint64_t misses() const { return misses_; }

 private:
  struct Place {
    Entry entry{};
    std::uint64_t used = 0;  // 0: free
    Time filled{};           // when the NIC has read it
  };
  Place* set_of(const Entry& entry);

  const perdura::sim::TranslationProfile& profile_;
  std::vector<Place> places_;  // a set's are adjacent
  std::vector<Time> reading_;  // until when each of the reads that can be under way is
  std::uint64_t uses_ = 0;
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
};

}  // namespace perdura::fabric::sim
