// Memory of a pool for a value that is being written. It is released unless taken() is called.
#pragma once

#include <optional>

#include "systems/mcas/pools.h"

namespace perdura::systems::mcas {

class Reservation {
 public:
  Reservation(Pool& pool, Bytes length) : pool_(pool), range_(pool.engine->reserve(length)) {}
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() {
    if (range_) pool_.engine->release(*range_);
  }
  // The reserved memory; empty if there was no room.
  const std::optional<ByteRange>& range() const { return range_; }
  void taken() { range_.reset(); }

 private:
  Pool& pool_;
  std::optional<ByteRange> range_;
};

}  // namespace perdura::systems::mcas
