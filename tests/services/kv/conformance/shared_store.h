// A partition that several worker threads serve.
#pragma once

#include <memory>
#include <string>

#include "tests/services/kv/conformance/support.h"

namespace perdura::systems::test {

// Starts the workers of a store at ports 0 to config.workers - 1 of node 0. The first one opens it;
// the others serve it from then on. Must outlive the run.
class SharedStore {
 public:
  SharedStore(Platform& platform, const kv::KvSystem& system, kv::KvConfig config)
      : system_(system),
        config_(std::move(config)),
        opened_(platform.create_barrier(config_.workers)) {
    for (std::uint32_t worker = 0; worker < config_.workers; ++worker) {
      platform.start_service(0, static_cast<fabric::Port>(worker), CompletionMode::polling,
                             [this, worker](Thread& thread) { return serve(thread, worker); });
    }
  }

  // Once it is open.
  Bytes capacity() const { return shared_->space().capacity; }
  Bytes first_capacity() const { return first_capacity_; }

 private:
  Task<> serve(Thread& thread, std::uint32_t worker) {
    std::unique_ptr<kv::KvPartition> partition;  // worker 0 has it, which opens the store
    if (worker == 0) {
      partition = system_.open(thread, "pool", config_);
      shared_ = partition.get();
      first_capacity_ = capacity();
    }
    co_await opened_->arrive_and_wait();
    if (partition) {
      co_await partition->serve();
    } else {
      co_await shared_->serve_also(thread);
    }
  }

  const kv::KvSystem& system_;
  kv::KvConfig config_;
  std::unique_ptr<Platform::Barrier> opened_;
  kv::KvPartition* shared_ = nullptr;
  Bytes first_capacity_ = 0;
};

}  // namespace perdura::systems::test
