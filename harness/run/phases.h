// The phases of a point, which are the same for every driver: all threads of the cluster go through
// them together, and a driver defines what each of its threads does in them.
//
//   prepare | warm up |        || count |  operate  |        | count |
//           |         | settle || count |           | settle | count |
//                              ||<---------- an interval ----------->|
//
// Each column ends at a barrier of all threads. There are two intervals. The first is empty: no
// thread operates, and it shows how much CPU time the barriers themselves take. That is subtracted
// from the second, measured one, so a server that does nothing costs nothing.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>

#include "harness/run/interval_costs.h"
#include "platform/platform.h"

namespace perdura::harness {

// The work of a thread in each phase; phases that are not overridden are empty. Only prepare() may
// throw. A thread that has failed still takes part in the barriers, so that the others do not wait
// forever.
class PhaseWork {
 public:
  virtual ~PhaseWork() = default;
  // Servers open their store, clients connect and load. All threads prepare at the same time.
  virtual Task<> prepare() { co_return; }
  // Receives the exception that prepare() threw. The later phases are called nevertheless.
  virtual void failed(std::exception_ptr) {}
  virtual Task<> warm_up() { co_return; }
  // Waits until deferred work is done.
  virtual Task<> settle() { co_return; }
  // The operations of the measured interval.
  virtual Task<> operate() { co_return; }
  // Called as soon as all threads have ended their operations, before they settle.
  virtual void operated() {}
  // Called at the end of the measured interval, when all threads have settled.
  virtual void collect() {}
};

class Phases {
 public:
  // For one point on a fresh platform. `threads` counts those of the whole cluster. All processes
  // create it at the same place among their barriers.
  Phases(Platform& platform, std::uint32_t threads)
      : barrier_(platform.create_barrier(threads)),
        costs_(platform.node_count(), platform.modelled()) {}

  // Takes one thread through all phases. Exactly one thread of each node measures the node's costs.
  Task<> take_part(Thread& thread, PhaseWork& work, bool takes_costs);
  // The same for a server's thread, which then keeps serving until the platform stops it.
  Task<> serve(Thread& thread, PhaseWork& work, bool takes_costs);

  const IntervalCosts& costs() const { return costs_; }

 private:
  std::unique_ptr<Platform::Barrier> barrier_;
  IntervalCosts costs_;
};

}  // namespace perdura::harness
