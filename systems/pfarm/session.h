// The client of P-FaRM-KV.
#pragma once

#include <memory>

#include "systems/bucket_hash/session.h"
#include "systems/pfarm/layout.h"
#include "systems/pfarm/parameters.h"

namespace perdura::systems::pfarm {

class PFarmSession final : public bucket_hash::Session {
 public:
  static Task<std::unique_ptr<KvSession>> connect(Thread& thread, fabric::Address server,
                                                  KvConfig config);

  // One READ, and one more for each overflow block of the key's home bucket if the neighborhood
  // does not have the key; more while the table is being resized, or if a READ was torn.
  Task<Result<Bytes>> get(Key key, std::span<std::byte> into) override;

 private:
  using Session::Session;

  // A search of a table; nothing if the connection broke.
  Task<std::optional<Search>> search(std::uint32_t lane, Table table, Slot key);
  // Of two buckets or a block, until it is not torn.
  Task<std::optional<Search>> search_buckets(std::uint32_t lane, Bytes offset, Bytes size,
                                             Slot key);
  Task<> look_at_state(std::uint32_t lane);

  Geometry geometry_;
  std::uint32_t level_ = 0;  // of the newest table that is known to have all items
};

}  // namespace perdura::systems::pfarm
