// One point of a RemoteLog sweep on one process: starts the threads of the nodes that live here,
// takes them through the phases, and collects what they measured. The phases are those of a
// key-value point (bench/kv/kv_run.h): warm-up, an empty interval that shows what CPU time the
// barriers take, the measured interval; before and after each the server applies all records.
#pragma once

#include <exception>
#include <memory>

#include "harness/run/interval_costs.h"
#include "harness/run/point.h"
#include "systems/remote_log/log_server.h"
#include "systems/remote_log/remote_log.h"

namespace perdura::bench {

class LogRun {
 public:
  LogRun(Platform& platform, const harness::Point& point);
  // Throws what left the platform's run(): no more of this run can be known.
  harness::Measurement execute();

 private:
  using Interval = harness::Interval;

  Task<> serve(Thread& thread);
  Task<> use(Thread& thread);
  Task<> append(RemoteLog& log, std::uint64_t records, bool measured);
  Task<> wait_for_all() { return barrier_->arrive_and_wait(); }
  static void note(std::exception_ptr problem, std::string_view who,
                   harness::Measurement& measurement);

  Platform& platform_;
  const harness::Point& point_;
  LogOptions options_;
  std::unique_ptr<Platform::Barrier> barrier_;
  harness::IntervalCosts costs_;
  harness::Measurement server_;
  harness::Measurement client_;
};

}  // namespace perdura::bench
