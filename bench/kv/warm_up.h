// Ends the warm-up of the clients when the rate of operations is steady ([workload] steady_slope,
// steady_window_ms). The clients of a node are judged together, and they keep up their load until
// the clients of all nodes are steady, so that no node is judged while others have already stopped.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "bench/kv/kv_client.h"
#include "platform/platform.h"

namespace perdura::bench {

class WarmUp {
 public:
  // `clients` are those of one node; `stop` is the flag that they share.
  WarmUp(const harness::Point& point, std::vector<const KvClient*> clients,
         const std::atomic<bool>& stop)
      : point_(point), clients_(std::move(clients)), stop_(stop) {}

  // Observes the clients until their rate is steady or one of them has ended its warm-up, then
  // waits for the other nodes at the barrier. To be spawned on a thread of the node.
  Task<> watch(Platform::Barrier& nodes);
  // Waits until watch() has ended. To be awaited on the same thread.
  Task<> ended();

  // The flag for the clients' stretches (KvStretch::over); set when all nodes are steady.
  const std::atomic<bool>& over() const { return over_; }
  // Why the point must not be measured; empty if the rate became steady.
  const std::string& problem() const { return problem_; }

 private:
  bool at_work() const;
  std::uint64_t operations() const;

  const harness::Point& point_;
  std::vector<const KvClient*> clients_;
  const std::atomic<bool>& stop_;
  std::atomic<bool> over_{false};
  bool has_ended_ = false;
  WaitList waiting_;
  std::string problem_;
};

}  // namespace perdura::bench
