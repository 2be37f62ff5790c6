#include "bench/kv/space_sampler.h"

#include <algorithm>

#include "platform/runtime/executor.h"

namespace perdura::bench {

SpaceSampler::Member::Member(SpaceSampler& sampler, const kv::KvPartition& partition)
    : sampler_(sampler), partition_(partition) {
  const std::scoped_lock lock(sampler_.mutex_);
  sampler_.partitions_.push_back(&partition_);
}

SpaceSampler::Member::~Member() {
  const std::scoped_lock lock(sampler_.mutex_);
  std::erase(sampler_.partitions_, &partition_);
}

Task<> SpaceSampler::run() {
  Time next = Executor::current().now();
  while (!stopped_) {
    sample();
    // A thread that was kept from running skips the samples that it missed.
    for (const Time now = Executor::current().now(); next <= now;) next += interval_;
    co_await sleep_until(next);
  }
}

void SpaceSampler::stop() {
  stopped_ = true;
  sample();
}

void SpaceSampler::sample() {
  harness::Timeline::Space sum{Executor::current().now(), 0, 0, 0, 0};
  const std::scoped_lock lock(mutex_);
  for (const kv::KvPartition* partition : partitions_) {
    const kv::KvSpace space = partition->space();
    if (space.capacity == 0) return;
    sum.capacity += space.capacity;
    sum.free += space.free;
    sum.cleanings += space.cleanings;
    sum.cleanings_now += space.cleanings_now;
  }
  if (sum.capacity > 0) samples_.push_back(sum);
}

}  // namespace perdura::bench
