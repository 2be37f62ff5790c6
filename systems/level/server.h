// The server of level hashing.
#pragma once

#include <string>

#include "systems/bucket_hash/pool.h"
#include "systems/bucket_hash/server.h"
#include "systems/level/index.h"
#include "systems/level/parameters.h"

namespace perdura::systems::level {

class LevelServer final : public bucket_hash::Server {
 public:
  LevelServer(Node& node, const std::string& name, const KvConfig& config,
              const Parameters& parameters);

  // Locks the key's candidates. Resizes if it must: requests wait meanwhile; READs go on.
  Task<Result<void>> put(std::uint32_t worker, Slot item) override;
  Task<Result<void>> erase(std::uint32_t worker, Slot key) override;
  bucket_hash::Plan plan() const override;
  KvSpace space() const override;
  Readable readable() const override;

 private:
  Task<Index::Outcome> try_put(std::uint32_t worker, Slot item, Hashes hashes);
  Task<> resize(std::uint32_t bottom);

  bucket_hash::Pool pool_;
  Index index_;
};

// What a client knows of an index when it connects.
bucket_hash::Plan plan_of(const Geometry& geometry, std::uint32_t bottom);
Geometry geometry_of(const bucket_hash::Plan& plan);
std::uint32_t bottom_of(const bucket_hash::Plan& plan);

}  // namespace perdura::systems::level
