// Recording and checking what the clients of a key-value run did (docs/history.md), for experiments
// with check_history = true.
#pragma once

#include <memory>
#include <span>

#include "harness/run/point.h"
#include "services/kv/kv.h"
#include "services/kv/recorder.h"
#include "services/kv/workload_format.h"

namespace perdura::bench {

// What one client did, from loading to its last operation.
class ClientHistory {
 public:
  ClientHistory(const harness::Point& point, std::uint32_t client);

  // A session to be used in place of the other. Both must outlive it.
  std::unique_ptr<systems::KvSession> record(systems::KvSession& session);
  std::span<const history::Operation> operations() const { return log_.operations(); }

 private:
  std::uint32_t client_;
  history::WorkloadFormat format_;
  history::OperationLog log_;
};

// Adds what a client did to what check_history() judges.
void add_evidence(std::span<const history::Operation> operations,
                  harness::Measurement& measurement);

// Throws UsageError if the workload's values are too short to hold a version.
void check_values_tell_versions(const harness::Point& point);

// Checks the whole history of a point and takes it out of the measurement. A violation makes the
// point invalid. Runs that were given up are left alone: not all of their clients may have
// reported.
void check_history(const harness::Point& point, harness::Measurement& measurement);

}  // namespace perdura::bench
