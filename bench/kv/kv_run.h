// One point of a key-value sweep on one process: starts the threads of the nodes that this process
// runs, defines what they do in each phase (harness/run/phases.h), and collects what they measured.
//
// If the workers of a server share one partition, the first of them opens it and the others wait
// for that before they serve; clients are distributed over the workers.
//
// On platforms in real time each client first measures the harness's own overhead (harness_cost.h).
// With steady_slope a node's WarmUp ends the warm-up of its clients.
//
// If the point is to be recorded over time, one more thread on the server's node samples the
// store's space while operations are measured.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "bench/driver/crew.h"
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
  KvRun(Platform& platform, const harness::Point& point, const kv::KvSystem& system);

  // Rethrows the exception that ended the platform's run(); such a run has no results.
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
  const kv::KvSystem& system_;
  NodeId servers_;
  NodeId client_nodes_;
  std::uint32_t clients_total_;
  std::uint32_t threads_;        // threads of a server
  std::uint32_t workers_total_;  // workers of all servers together, numbered server by server
  kv::KvConfig partition_config_;
  std::optional<harness::Phases> phases_;
  std::unique_ptr<Platform::Barrier> opened_;  // workers meet here; null if each opens a partition
  // A barrier of all threads that is passed when every server has opened its store, which may take
  // longer than a client's connection time-out. Null on a model, where opening takes no time.
  std::unique_ptr<Platform::Barrier> stores_open_;
  // By server: the partition that its workers share, once opened.
  std::vector<kv::KvPartition*> shared_;
  std::optional<SpaceSampler> space_sampler_;
  std::atomic<bool> stop_{false};
  std::optional<Crew> crew_;                               // this process's clients
  std::vector<std::unique_ptr<KvClient>> clients_;         // by index; null if it lives elsewhere
  std::vector<std::unique_ptr<ClientHistory>> histories_;  // likewise; null if none is recorded
  std::vector<Picoseconds> harness_costs_;                 // by client, 0 if it lives elsewhere
  std::unique_ptr<Platform::Barrier> nodes_steady_;        // null unless steady_slope is given
  std::vector<std::unique_ptr<WarmUp>> warm_ups_;          // by client node; may be null
  std::vector<std::vector<double>> session_metrics_;       // by client
  std::vector<std::vector<double>> partition_metrics_;     // by worker
  std::vector<harness::SpaceUse> spaces_;                  // likewise
  std::vector<std::exception_ptr> worker_problems_;
};

}  // namespace perdura::bench
