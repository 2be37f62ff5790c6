// One point of a sweep over logs on one process: starts the threads of the nodes that this process
// runs, defines what they do in each phase (harness/run/phases.h), and collects what they measured.
// In the settle phase the server applies all records.
#pragma once

#include <optional>

#include "bench/log/log_target.h"
#include "harness/run/phases.h"
#include "harness/run/point.h"

namespace perdura::bench {

class LogRun {
 public:
  // `target` must outlive the run.
  LogRun(Platform& platform, const harness::Point& point, LogLoad load, const LogTarget& target);
  // Rethrows the exception that ended the platform's run(); such a run has no results.
  harness::Measurement execute();

 private:
  class Server;
  class Client;

  Task<> serve(Thread& thread);
  Task<> use(Thread& thread);

  Platform& platform_;
  const harness::Point& point_;
  const LogLoad load_;
  const LogTarget& target_;
  NodeId server_node_;
  NodeId client_node_;
  std::optional<harness::Phases> phases_;
  harness::Measurement server_;
  harness::Measurement client_;
};

}  // namespace perdura::bench
