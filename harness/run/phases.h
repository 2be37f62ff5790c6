// The phases of a point, which are the same for every driver: all threads of the cluster go through
// them together, and a driver defines what each of its threads does in them.
//
//   prepare | warm up |        || count |  operate  |        | count |
//           |         | settle || count |           | settle | count |
//                              ||<---------- an interval ----------->|
//
// Each column ends at a barrier of all threads. There are two intervals: an empty one first, in
// which nobody operates and which shows what CPU time the barriers themselves take, and the
// measured one, from which that is subtracted; so a server that does nothing costs nothing.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>

#include "harness/run/interval_costs.h"
#include "platform/platform.h"

namespace perdura::harness {

// The work of a thread in each phase; phases that are not overridden are empty. Only prepare() may
// throw. A thread that has failed still takes part in the barriers, so that the others do not wait
// for ever.
class PhaseWork {
 public:
  virtual ~PhaseWork() = default;
  // Opens what it serves, or connects and loads. Threads prepare at the same time.
  virtual Task<> prepare() { co_return; }
  // Receives the exception that prepare() threw. The phases that follow are called nevertheless.
  virtual void failed(std::exception_ptr) {}
  virtual Task<> warm_up() { co_return; }
  // Waits until work that was deferred is done.
  virtual Task<> settle() { co_return; }
  // The operations of the measured interval.
  virtual Task<> operate() { co_return; }
  // Called as soon as all threads have ended their operations, before they settle.
  virtual void operated() {}
  // At the end of the measured interval, when all have settled.
  virtual void collect() {}
};

class Phases {
 public:
  // Of a point on a fresh platform; `threads`: of the whole cluster that will take part. All
  // processes create it at the same place among their barriers.
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
