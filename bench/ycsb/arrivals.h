// The times at which the operations of an open loop are due ("arrive"). They are drawn in advance
// from the seed and never depend on the system's answers, so a system that stalls still gets all
// operations that arrive meanwhile.
#pragma once

#include <cstdint>

#include "platform/base/random.h"

namespace perdura::ycsb {

enum class ArrivalProcess : std::uint8_t {
  fixed,    // arrivals at equal intervals; the clients take turns
  poisson,  // arrivals at exponentially distributed intervals
};

// The arrivals of one client. Their times depend on the arguments only, and are the same on every
// machine. An object belongs to one client and is never shared.
class Arrivals {
 public:
  // `rate`: operations per second of all clients together, of which each has an equal share.
  // `stretch` numbers independent periods of load, such as warm-up and measurement. Precondition:
  // rate > 0, client < clients.
  Arrivals(ArrivalProcess process, std::uint64_t rate, std::uint64_t seed, std::uint32_t client,
           std::uint32_t clients, std::uint32_t stretch);

  // The time of the next arrival: picoseconds from the beginning of the stretch, never decreasing.
  std::uint64_t next();

 private:
  ArrivalProcess process_;
  std::uint64_t rate_;
  std::uint64_t clients_;
  Random random_;
  std::uint64_t position_;  // fixed: number of the next arrival among those of all clients
  std::uint64_t last_ = 0;  // poisson: time of the last arrival
  double mean_gap_;         // poisson: in picoseconds
};

}  // namespace perdura::ycsb
