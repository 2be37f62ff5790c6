// The log that a point measures, as its driver opens it (bench/log/log_run.h).
#pragma once

#include <memory>
#include <string>

#include "harness/results/measurement.h"
#include "platform/platform.h"
#include "services/log/log.h"

namespace perdura::bench {

class LogTarget {
 public:
  virtual ~LogTarget() = default;
  // The method of remote persistence for results; empty if the log persists in its own way.
  virtual std::string method_name(const fabric::Capabilities& device) const = 0;
  // True if the client keeps the log itself; then there is no server's side.
  virtual bool is_local() const { return false; }
  // The server's side.
  virtual std::unique_ptr<services::LogStore> open(Thread& thread,
                                                   services::ApplyRecord apply) const = 0;
  // The client's side. Throws UsageError if the thread's device lacks what the log needs.
  virtual Task<std::unique_ptr<services::LogWriter>> connect(Thread& thread,
                                                             fabric::Address server) const = 0;
};

// The records that the client of a point appends.
struct LogLoad {
  std::uint64_t operations = 0;  // records that are measured
  std::uint64_t warmup = 0;      // records before that
  std::uint32_t record_size = 0;
  harness::OperationKind kind;  // names an append in results
};

}  // namespace perdura::bench
