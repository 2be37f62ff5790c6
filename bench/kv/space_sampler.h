// Samples periodically how full a store is while a run is being measured. Runs on a dedicated
// thread of the server's node, so that no worker is woken for it.
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

  // Registers a partition for as long as the object lives. May be used from any thread.
  class Member {
   public:
    Member(SpaceSampler& sampler, const kv::KvPartition& partition);
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

   private:
    SpaceSampler& sampler_;
    const kv::KvPartition& partition_;
  };

  // Takes a sample at once, and then one per interval until stop(). Both run on the sampler's
  // thread.
  Task<> run();
  // Takes a last sample and ends run().
  void stop();

  const std::vector<harness::Timeline::Space>& samples() const { return samples_; }

 private:
  void sample();

  Picoseconds interval_;
  bool stopped_ = false;
  std::mutex mutex_;
  std::vector<const kv::KvPartition*> partitions_;
  std::vector<harness::Timeline::Space> samples_;
};

}  // namespace perdura::bench
