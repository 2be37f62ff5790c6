// The client of continuity hashing.
#pragma once

#include <memory>

#include "systems/bucket_hash/session.h"
#include "systems/continuity/layout.h"
#include "systems/continuity/parameters.h"

namespace perdura::systems::continuity {

class ContinuitySession final : public bucket_hash::Session {
 public:
  static Task<std::unique_ptr<KvSession>> connect(Thread& thread, fabric::Address server,
                                                  KvConfig config);

 private:
  using Session::Session;

  // One READ, and one more if the key's segment pair has added SBuckets and the segment does not
  // have the key; more while the table is being resized, or if a READ was torn.
  Task<std::optional<LookedUp>> look_up(std::uint32_t lane, Slot key) override;
  // A search of a table; nothing if the connection broke.
  Task<std::optional<Search>> search(std::uint32_t lane, Table table, Slot key);
  Task<std::optional<Search>> search_once(std::uint32_t lane, Table table, Slot key);

  Geometry geometry_;
  std::uint32_t level_ = 0;  // of the newest table that is known to have all items
};

}  // namespace perdura::systems::continuity
