// The client of level hashing.
#pragma once

#include <memory>

#include "systems/bucket_hash/session.h"
#include "systems/level/layout.h"
#include "systems/level/parameters.h"

namespace perdura::systems::level {

class LevelSession final : public bucket_hash::Session {
 public:
  static Task<std::unique_ptr<KvSession>> connect(Thread& thread, fabric::Address server,
                                                  KvConfig config);

 private:
  struct Wanted {
    Slot key;
    Hashes hashes;
  };
  using Session::Session;

  // One READ after the other until the key is found: of the two candidates in the top level, then
  // of those in the bottom level. More if the table has been resized since this client last knew,
  // or if a READ was torn.
  Task<std::optional<LookedUp>> look_up(std::uint32_t lane, Slot key) override;
  // Each is nothing if the connection broke. `search` goes on from a level, to where sealed buckets
  // lead; `later` says whether it did.
  Task<std::optional<Search>> search(std::uint32_t lane, std::uint32_t level, Wanted wanted,
                                     bool& later);
  Task<std::optional<Search>> search_level(std::uint32_t lane, std::uint32_t level, Wanted wanted);
  Task<std::optional<Search>> search_bucket_at(std::uint32_t lane, Bytes offset, Wanted wanted);

  Geometry geometry_;
  std::uint32_t bottom_ = 0;  // no item is in an earlier level
};

}  // namespace perdura::systems::level
