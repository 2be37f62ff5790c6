// Asks at an interval how full a store is, while a run is being measured. Belongs to a thread of
// the server's node that does nothing else, so that no worker is woken for it.
#pragma once

#include <mutex>
#include <vector>

#include "harness/results/timeline.h"
#include "platform/runtime/task.h"
#include "services/kv/kv.h"

namespace perdura::bench {

class SpaceSampler {
 public:
  explicit SpaceSampler(Picoseconds interval) : interval_(interval) {}

  // For as long as it lives, a partition takes part; from any thread.
  class Member {
   public:
    Member(SpaceSampler& sampler, const systems::KvPartition& partition);
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

   private:
    SpaceSampler& sampler_;
    const systems::KvPartition& partition_;
  };

  // Samples now and at every interval until stop(). Both on the sampler's thread.
  Task<> run();
  // Samples once more.
  void stop();

  const std::vector<harness::Timeline::Space>& samples() const { return samples_; }

 private:
  void sample();

  Picoseconds interval_;
  bool stopped_ = false;
  std::mutex mutex_;
  std::vector<const systems::KvPartition*> partitions_;
  std::vector<harness::Timeline::Space> samples_;
};

}  // namespace perdura::bench
