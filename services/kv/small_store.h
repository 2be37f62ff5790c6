// The small stores in which failures of key-value systems are explored (KvSystem::small_stores),
// and what happens in them of itself (KvSystem::events).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "services/kv/kv.h"

namespace perdura::services {

// Makes this configuration that of the system's small store of this number, or of the next one that
// takes keys and values of its sizes; of none if there is no such. Parameters that it sets stay.
// Returns the keys that the store is to hold at the beginning, besides `config.records` as it was.
std::span<const std::uint64_t> make_small(const systems::KvSystem& system, std::size_t number,
                                          systems::KvConfig& config);

// Counts the events of a run's partitions, over all that are or were open in it.
class StoreEvents {
 public:
  explicit StoreEvents(const systems::KvSystem& system)
      : system_(system), closed_(system.events.size()) {}

  // A partition for as long as it is open.
  class Opened {
   public:
    Opened(StoreEvents& events, const systems::KvPartition& partition)
        : events_(events), partition_(partition) {
      events_.open_.insert(&partition);
    }
    ~Opened() {
      events_.open_.erase(&partition_);
      add(partition_, events_.closed_);
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

   private:
    StoreEvents& events_;
    const systems::KvPartition& partition_;
  };

  std::map<std::string, std::uint64_t, std::less<>> counts() const;

 private:
  static void add(const systems::KvPartition& partition, std::vector<std::uint64_t>& sums);

  const systems::KvSystem& system_;
  std::vector<std::uint64_t> closed_;  // sums of the partitions that are closed
  std::set<const systems::KvPartition*> open_;
};

}  // namespace perdura::services
