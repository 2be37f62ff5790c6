// One point of a sweep of pools on one process: starts the shards and clients of the nodes that
// this process runs, defines what they do in the phases (harness/run/phases.h), and collects what
// they measured. Clients connect and load when all shards are open.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "bench/driver/crew.h"
#include "bench/objects/objects_client.h"
#include "harness/run/phases.h"
#include "harness/run/point.h"
#include "services/objects/objects.h"

namespace perdura::bench {

class ObjectsRun {
 public:
  ObjectsRun(Platform& platform, const harness::Point& point, const objects::System& system);
  // Rethrows the exception that ended the platform's run(); such a run has no results.
  harness::Measurement execute();

 private:
  class Server;
  class User;

  void start_threads();
  Task<> serve(Thread& thread, std::uint32_t shard);
  Task<> use(Thread& thread, std::uint32_t client);
  NodeId node_of_client(std::uint32_t client) const {
    return point_.roles.node("client", client % client_nodes_);
  }
  fabric::Address shard_of(std::uint32_t client) const {
    return {point_.roles.node("server"), static_cast<fabric::Port>(client / clients_per_shard_)};
  }
  std::uint64_t share(std::string_view number, std::uint32_t client) const;
  harness::Measurement collect() const;

  Platform& platform_;
  const harness::Point& point_;
  const objects::System& system_;
  NodeId client_nodes_;
  std::uint32_t shards_;
  std::uint32_t clients_per_shard_;
  std::uint32_t clients_total_;
  std::optional<harness::Phases> phases_;
  std::unique_ptr<Platform::Barrier> loaded_;  // where all clients meet when they have loaded
  std::optional<Crew> crew_;                   // this process's clients
  std::vector<std::unique_ptr<ObjectsClient>> clients_;  // by index; null if it lives elsewhere
  std::vector<std::exception_ptr> shard_problems_;
};

}  // namespace perdura::bench
