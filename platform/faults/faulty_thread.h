// A thread whose way to the fabric is unreliable: a system that is given it, in place of the
// platform's own, meets with lost connections, late and repeated messages, operations that take
// their time, and the death of its node, as a FaultPlan says. On any platform, since all is done in
// front of the platform's endpoint:
//
//   FaultyThread faulty(thread, plan, death);
//   const auto session = co_await system.connect(faulty.thread(), server, config);
//
// Every random decision comes from the plan's seed and the endpoint's address, in the order of the
// endpoint's operations, so a run on `sim` is replayed exactly by its plan.
//
// What the wrapper does is what a reliable connection allows: operations of a connection are posted
// in their order, so behind one that is late all others wait. The exception are repeated SENDs,
// which no device produces: they stand for a program that sends again what it thinks is lost.
#pragma once

#include <functional>
#include <memory>

#include "platform/fabric/fabric.h"
#include "platform/faults/fault_plan.h"
#include "platform/platform.h"

namespace perdura::faults {

// Ends the node of the thread so much later, and not before the task that is running suspends; on
// `sim`: platform.at(platform.engine().now() + after, [&] { platform.kill(node); }).
using Death = std::function<void(Picoseconds after)>;

// What has been done so far.
struct FaultCounts {
  std::uint64_t operations = 0;  // posted by the system
  std::uint64_t held = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t lost = 0;  // connections
  friend bool operator==(const FaultCounts&, const FaultCounts&) = default;
};

class Faults;

class FaultyThread {
 public:
  // `inner` must outlive whatever uses this. Without `death` the plan must not contain one.
  FaultyThread(Thread& inner, const FaultPlan& plan, Death death = {});
  ~FaultyThread();

  Thread& thread() { return thread_; }
  const FaultCounts& counts() const;
  // From now on what the plan says is done, or not; operations are counted all the time. On at
  // first.
  void enable(bool on);
  // Breaks all connections that are there now.
  void lose_connections();

 private:
  std::shared_ptr<Faults> faults_;
  std::unique_ptr<fabric::Endpoint> endpoint_;
  Thread thread_;
};

}  // namespace perdura::faults
