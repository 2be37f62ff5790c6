// The shard of a key-value store: a partition is one pool, which is made with the shard's memory
// and has all of it. Clients of the key-value interface and of pools use the same shard in the same
// way.
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

// What the harness holds. The task that accepts connections shares ownership of the shard, which
// lives as long as any of them.
class Partition final : public KvPartition {
 public:
  explicit Partition(std::shared_ptr<Shard> shard);
  KvSpace space() const override;
  std::vector<double> metrics() const override;
  std::vector<std::uint64_t> events() const override;
  std::string audit() override { return shard_->pools().audit(); }
  Task<> serve() override { return shard_->serve(); }
  Task<> settle() override { co_return; }  // nothing is deferred

 private:
  std::shared_ptr<Shard> shard_;
  Pool& pool_;  // never removed, since this uses it
  Bytes capacity_;
};

}  // namespace perdura::systems::mcas
