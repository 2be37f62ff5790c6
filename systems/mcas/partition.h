// The shard of a key-value store: a partition is one pool, which is created with the shard's memory
// and gets all of it. The shard serves clients of the key-value interface and of the pools'
// interface in the same way.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "services/kv/kv.h"
#include "systems/mcas/shard.h"

namespace perdura::systems::mcas {

inline constexpr std::string_view kPartitionPool = "kv";

inline constexpr std::array kEvents{services::Event{"added segments"},
                                    services::Event{"displaced items"},
                                    services::Event{"added pool regions"},
                                    services::Event{"returned heap regions"},
                                    services::Event{"undone region changes", true},
                                    services::Event{"cleared hops", true},
                                    services::Event{"freed entries", true}};

inline constexpr std::array kPartitionMetrics{
    services::Metric{"added_segments", "segments added to the table", "Segments added"},
    services::Metric{"displaced_items", "items moved to make room", "Items displaced"},
    services::Metric{"returned_heap_regions", "heap regions returned", "Heap regions returned"}};

// The harness's handle of a shard. Ownership of the shard is shared with the task that accepts
// connections, so the shard lives as long as either of them.
class Partition final : public kv::KvPartition {
 public:
  explicit Partition(std::shared_ptr<Shard> shard);
  kv::KvSpace space() const override;
  std::vector<double> metrics() const override;
  std::vector<std::uint64_t> events() const override;
  std::string audit() override { return shard_->pools().audit(); }
  Task<> serve() override { return shard_->serve(); }
  Task<> settle() override { co_return; }  // nothing is deferred

 private:
  std::shared_ptr<Shard> shard_;
  Pool& pool_;  // never removed, since this object counts as one of its users
  Bytes capacity_;
};

}  // namespace perdura::systems::mcas
