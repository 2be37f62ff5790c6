// A system that is a hash index: its Design is all that it has of its own.
//
//   kName, Parameters       as configurations name it and its parameters: Parameters::kTable
//   declares
//                           them, Parameters::of(config) has the index's `geometry` and a
//                           `queue_depth`
//   Index                   what the server changes: recover(), begin_resize(), resize_step(),
//                           slots(), items(), resizing(), geometry(), Outcome
//   shape_of(geometry)      for the header of the pool
//   Hash, hash_of(slot)     what is computed once for a key
//   table_in_use(index)     the number of the table, which a resize makes greater
//   put, erase(index, locks, worker, slot, hash)
//                           lock what they change; the worker is inside (bucket_hash/locks.h)
//   plan_of(geometry, table)
//   Reader                  how clients look up a key by what the plan says (bucket_hash/session.h)
#pragma once

#include "systems/bucket_hash/footprint.h"
#include "systems/bucket_hash/server.h"
#include "systems/bucket_hash/session.h"
#include "systems/bucket_hash/worker.h"

namespace perdura::systems::bucket_hash {

template <class Design>
constexpr KvSystem system_of(std::string_view title, std::string_view paper) {
  return {
      .name = Design::kName,
      .title = title,
      .paper = paper,
      .guarantee = "a completed put or delete is durable: the server's CPU has flushed it",
      .level = services::GuaranteeLevel::durable,
      // A request in the server's memory means nothing until its CPU has put the item into the
      // table.
      .put = {.carrier = persistence::Carrier::send, .replay = false},
      .max_key_size = kMaxKeySize,
      .max_value_size = kMaxValueSize,
      .shares_partition = true,
      .parameters = Design::Parameters::kTable,
      .footprint = kFootprint,
      .check = [](const KvConfig& config) { Design::Parameters::of(config); },
      .open = [](Thread& thread, std::string name,
                 const KvConfig& config) -> std::unique_ptr<KvPartition> {
        return std::make_unique<Partition<Server<Design>>>(
            thread, std::make_shared<Server<Design>>(thread.node, std::move(name), config,
                                                     Design::Parameters::of(config)));
      },
      .connect = Session<Design>::connect,
  };
}

}  // namespace perdura::systems::bucket_hash
