// One point of the driver `fan-out`, all nodes in this process.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "bench/remote_file/verbs_file.h"
#include "harness/run/phases.h"
#include "harness/run/point.h"

namespace perdura::bench {

// A write to all replicas in results.
inline const harness::OperationKind kReplicatedWrite{0, "write"};

class FanOutRun {
 public:
  FanOutRun(Platform& platform, const harness::Point& point, bool is_multicast);
  harness::Measurement execute();

 private:
  class Replica;
  class Client;

  Task<> serve(Thread& thread);
  Task<> use(Thread& thread);

  Platform& platform_;
  const harness::Point& point_;
  const bool is_multicast_;
  const Bytes size_;
  const std::uint32_t depth_;
  const NodeId replicas_;
  std::optional<harness::Phases> phases_;
  std::vector<std::unique_ptr<VerbsFile>> files_;  // by replica
  harness::Measurement result_;
};

}  // namespace perdura::bench
