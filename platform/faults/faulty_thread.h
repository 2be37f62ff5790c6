// Fault injection: a thread whose endpoint loses connections, delays and duplicates messages, slows
// operations down and kills its node, according to a FaultPlan. A system is given this thread
// instead of the platform's. It works on every platform, since it wraps the platform's endpoint:
//
//   FaultyThread faulty(thread, plan, death);
//   const auto session = co_await system.connect(faulty.thread(), server, config);
//
// Every random decision is derived from the plan's seed and the endpoint's address, in the order of
// the endpoint's operations. So on `sim` the plan replays a run exactly.
//
// The wrapper injects only faults that a reliable connection allows: operations of a connection are
// posted in order, so all later ones wait for a delayed one. The exception is duplicate SENDs,
// which no device produces: they stand for a program that retransmits a message that it believes
// lost.
#pragma once

#include <functional>
#include <memory>

#include "platform/fabric/fabric.h"
#include "platform/faults/fault_plan.h"
#include "platform/platform.h"

namespace perdura::faults {

// A function that kills the thread's node after this time, but not before the running task
// suspends. On `sim`: platform.at(platform.engine().now() + after, [&] { platform.kill(node); }).
using Death = std::function<void(Picoseconds after)>;

// The number of operations and injected faults so far.
struct FaultCounts {
  std::uint64_t operations = 0;  // posted by the system
  std::uint64_t held = 0;        // messages that were delayed
  std::uint64_t duplicated = 0;
  std::uint64_t lost = 0;  // connections
  friend bool operator==(const FaultCounts&, const FaultCounts&) = default;
};

class Faults;

class FaultyThread {
 public:
  // `inner` must outlive all users of this thread. Without `death`, the plan must not contain a
  // death.
  FaultyThread(Thread& inner, const FaultPlan& plan, Death death = {});
  ~FaultyThread();

  Thread& thread() { return thread_; }
  const FaultCounts& counts() const;
  // Switches the injection of faults on or off; it is on initially. Operations are counted in
  // either case.
  void enable(bool on);
  // Breaks all connections that exist now.
  void lose_connections();

 private:
  std::shared_ptr<Faults> faults_;
  std::unique_ptr<fabric::Endpoint> endpoint_;
  Thread thread_;
};

}  // namespace perdura::faults
