// A key-value system made of a hash index. Its Design contains everything that is specific to it:
//
//   kName, Parameters       the system's name in configurations, and its parameters there:
//                           Parameters::kTable declares them, Parameters::of(config) has the
//                           index's `geometry` and a `queue_depth`
//   kSmallStores, kEvents   as in KvSystem
//   Index                   what the server changes: recover(), begin_resize(), resize_step(),
//                           slots(), items(), find(), for_each(), resizing(), geometry(), Outcome;
//                           events() are the counts of kEvents
//   shape_of(geometry)      the geometry as the pool's header stores it
//   Hash, hash_of(slot)     what is computed once per operation from its key
//   table_in_use(index)     the number of the table; every resize increments it
//   put, erase(index, locks, worker, slot, hash)
//                           lock what they change; the worker is inside (bucket_hash/locks.h)
//   plan_of(geometry, table)
//                           the information for a connecting client
//   IndexReader             looks up keys on behalf of clients, by the plan (bucket_hash/session.h)
#pragma once

#include "systems/bucket_hash/footprint.h"
#include "systems/bucket_hash/server.h"
#include "systems/bucket_hash/session.h"
#include "systems/bucket_hash/worker.h"

namespace perdura::systems::bucket_hash {

template <class Design>
constexpr kv::KvSystem system_of(std::string_view title, std::string_view paper) {
  return {
      .name = Design::kName,
      .title = title,
      .paper = paper,
      .guarantee = "a completed put or delete is durable: the server's CPU has flushed it",
      .level = services::GuaranteeLevel::durable,
      // A request that has reached the server's memory has no effect until the server's CPU
      // executes it.
      .put = methods::UpdateNeeds{.carrier = methods::Carrier::send, .replay = false},
      .needs = kDeviceNeeds,
      .max_key_size = kMaxKeySize,
      .max_value_size = kMaxValueSize,
      .shares_partition = true,
      .parameters = Design::Parameters::kTable,
      .small_stores = Design::kSmallStores,
      .events = Design::kEvents,
      .footprint = kFootprint,
      .check = [](const kv::KvConfig& config) { Design::Parameters::of(config); },
      .open = [](Thread& thread, std::string name,
                 const kv::KvConfig& config) -> std::unique_ptr<kv::KvPartition> {
        return std::make_unique<Partition<Server<Design>>>(
            thread, std::make_shared<Server<Design>>(thread.node, std::move(name), config,
                                                     Design::Parameters::of(config)));
      },
      .connect = IndexSession<Design>::connect,
  };
}

}  // namespace perdura::systems::bucket_hash
