// One point of a RemoteLog sweep on one process: starts the threads of the nodes that this process
// runs, defines what they do in each phase (harness/run/phases.h), and collects what they measured.
// In the settle phase the server applies all records.
#pragma once

#include <exception>
#include <optional>
#include <string_view>

#include "harness/run/phases.h"
#include "harness/run/point.h"
#include "systems/remote_log/log_server.h"
#include "systems/remote_log/remote_log.h"

namespace perdura::bench {

class LogRun {
 public:
  LogRun(Platform& platform, const harness::Point& point);
  // Rethrows the exception that ended the platform's run(); such a run has no results.
  harness::Measurement execute();

 private:
  class Server;
  class Client;

  Task<> serve(Thread& thread);
  Task<> use(Thread& thread);

  Platform& platform_;
  const harness::Point& point_;
  NodeId server_node_;
  NodeId client_node_;
  systems::remote_log::LogOptions options_;
  std::optional<harness::Phases> phases_;
  harness::Measurement server_;
  harness::Measurement client_;
};

}  // namespace perdura::bench
