// The small stores in which failures of key-value systems are explored (KvSystem::small_stores),
// and the events in them (KvSystem::events).
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

// Applies the system's small store of this number to `config`; if that one does not support the key
// and value sizes of `config`, the next one that does. If there is none, `config` stays as it is.
// Parameters that `config` sets are kept. Returns the keys that the store is to hold at the
// beginning, for which it adds room to `config.records`.
std::span<const std::uint64_t> make_small(const kv::KvSystem& system, std::size_t number,
                                          kv::KvConfig& config);

// Counts the events of all partitions that are or were open in a run.
class StoreEvents {
 public:
  explicit StoreEvents(const kv::KvSystem& system)
      : system_(system), closed_(system.events.size()) {}

  // Registers a partition for as long as it is open.
  class Opened {
   public:
    Opened(StoreEvents& events, const kv::KvPartition& partition)
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
    const kv::KvPartition& partition_;
  };

  std::map<std::string, std::uint64_t, std::less<>> counts() const;

 private:
  static void add(const kv::KvPartition& partition, std::vector<std::uint64_t>& sums);

  const kv::KvSystem& system_;
  std::vector<std::uint64_t> closed_;  // sums of the partitions that are closed
  std::set<const kv::KvPartition*> open_;
};

}  // namespace perdura::services
