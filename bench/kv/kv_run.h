// One point of a key-value sweep on one process: starts the threads of the nodes that live here,
// says what they do in the phases (harness/run/phases.h), and collects what they measured.
//
// The workers of a system that shares its partition wait, before they serve it, until the first one
// of their server has opened it; clients are spread over them.
//
// On platforms that measure, each client first finds out what the harness itself costs
// (harness_cost.h). With steady_slope the warm-up of a node is ended by its WarmUp.
//
// If the point is to be recorded over time, one more thread of the server's node samples the space
// of the store while the operations are measured.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "bench/kv/crew.h"
#include "bench/kv/kv_client.h"
#include "bench/kv/kv_history.h"
#include "bench/kv/space_sampler.h"
#include "bench/kv/warm_up.h"
#include "harness/run/phases.h"
#include "harness/run/point.h"
#include "services/kv/kv.h"

namespace perdura::bench {

class KvRun {
 public:
  KvRun(Platform& platform, const harness::Point& point, const systems::KvSystem& system);

  // Throws what left the platform's run(): no more of this run can be known.
  harness::Measurement execute();

 private:
  class Worker;
  class User;
  class Sampler;

  void start_threads();
  void watch_warm_ups();
  Task<> serve(Thread& thread, std::uint32_t index);
  NodeId server_of(std::uint32_t worker) const { return worker / threads_; }
  std::vector<fabric::Address> partitions_of(std::uint32_t client) const;
  Task<> use(Thread& thread, std::uint32_t index);
  KvStretch stretch(std::uint32_t index, bool measured);
  Task<> sample_space(Thread& thread);
  harness::Measurement collect() const;

  Platform& platform_;
  const harness::Point& point_;
  const systems::KvSystem& system_;
  NodeId servers_;
  NodeId client_nodes_;
  std::uint32_t clients_total_;
  std::uint32_t threads_;        // of a server
  std::uint32_t workers_total_;  // of all servers, numbered server by server
  systems::KvConfig partition_config_;
  std::optional<harness::Phases> phases_;
  std::unique_ptr<Platform::Barrier> opened_;  // of the workers; null if each opens a partition
  // Of all threads, when every server has its store, which may take longer than a client waits for
  // a connection. Null on a model, where it takes no time.
  std::unique_ptr<Platform::Barrier> stores_open_;
  std::vector<systems::KvPartition*> shared_;  // by server: by all its workers, once it is opened
  std::optional<SpaceSampler> space_sampler_;
  std::atomic<bool> stop_{false};
  std::optional<Crew> crew_;                               // of this process' clients
  std::vector<std::unique_ptr<KvClient>> clients_;         // by index; null if it lives elsewhere
  std::vector<std::unique_ptr<ClientHistory>> histories_;  // likewise; null if none is recorded
  std::vector<Picoseconds> harness_costs_;                 // by client, 0 if it lives elsewhere
  std::unique_ptr<Platform::Barrier> nodes_steady_;        // of the client nodes; null if not asked
  std::vector<std::unique_ptr<WarmUp>> warm_ups_;          // by client node; likewise
  std::vector<std::vector<double>> session_metrics_;       // by client
  std::vector<std::vector<double>> partition_metrics_;     // by worker
  std::vector<harness::SpaceUse> spaces_;                  // likewise
  std::vector<std::exception_ptr> worker_problems_;
};

}  // namespace perdura::bench
