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

// The operations of one client, from loading to its last one.
class ClientHistory {
 public:
  ClientHistory(const harness::Point& point, std::uint32_t client);

  // Wraps `session` in one that records its operations, to be used in its place. `session` and this
  // object must outlive it.
  std::unique_ptr<kv::KvSession> record(kv::KvSession& session);
  std::span<const history::Operation> operations() const { return log_.operations(); }

 private:
  std::uint32_t client_;
  kv::WorkloadFormat format_;
  kv::OperationLog log_;
};

// Adds a client's operations to the evidence that check_history() judges.
void add_evidence(std::span<const history::Operation> operations,
                  harness::Measurement& measurement);

// Throws UsageError if the workload's values are too short to hold a version.
void check_values_tell_versions(const harness::Point& point);

// Checks the whole history of a point, writes it to history_folder if one is given, and removes it
// from the measurement. A violation makes the point invalid. Runs that were given up are not
// checked, since some of their clients may not have reported.
void check_history(const harness::Point& point, harness::Measurement& measurement);

}  // namespace perdura::bench
