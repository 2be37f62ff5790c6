// Memory of a pool for a value that is being written. It is released unless taken() is called.
#pragma once

#include <optional>

#include "systems/mcas/pools.h"

namespace perdura::systems::mcas {

class Reservation {
 public:
  Reservation(Pool& pool, Bytes length) : pool_(pool), place_(pool.engine->reserve(length)) {}
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() {
    if (place_) pool_.engine->release(*place_);
  }
  // The reserved memory; empty if there was no room.
  const std::optional<Place>& place() const { return place_; }
  void taken() { place_.reset(); }

 private:
  Pool& pool_;
  std::optional<Place> place_;
};

}  // namespace perdura::systems::mcas
