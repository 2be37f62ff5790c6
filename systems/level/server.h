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
  LevelServer(Thread& thread, const std::string& name, const KvConfig& config,
              const Parameters& parameters);

  KvSpace space() const override;

 private:
  // Resizes if it must. Requests wait meanwhile; READs go on.
  Task<Result<void>> put(Slot item) override;
  Task<Result<void>> erase(Slot key) override;
  bucket_hash::Plan plan() const override;
  fabric::RemoteKey index_key() const override { return index_memory_.key; }

  bucket_hash::Pool pool_;
  Index index_;
  fabric::MemoryRegion index_memory_;
};

// What a client knows of an index when it connects.
bucket_hash::Plan plan_of(const Geometry& geometry, std::uint32_t bottom);
Geometry geometry_of(const bucket_hash::Plan& plan);
std::uint32_t bottom_of(const bucket_hash::Plan& plan);

}  // namespace perdura::systems::level
