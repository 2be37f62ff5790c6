// A key-value store and its clients as real processes that may be killed.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "platform/base/error.h"
#include "services/kv/kv.h"
#include "systems/registry/registry.h"
#include "tests/support/processes.h"

namespace perdura::systems::test {

using perdura::test::SharedMemory;

class KvProcesses : public perdura::test::Processes {
 public:
  KvProcesses(const std::string& system, kv::KvConfig config)
      : Processes("kv-kill-" + system), system_(system), config_(std::move(config)) {}

  // A server; `watch` is given its partition and runs beside it.
  pid_t start_server(const std::function<Task<>(const kv::KvPartition&)>& watch = {}) {
    return start(0, [this, watch](Thread& thread) -> Task<> {
      const auto partition = find_kv_system(system_).open(thread, "pool", config_);
      if (watch) thread.executor.spawn(watch(*partition));
      co_await partition->serve();
    });
  }

  // A server with all of its workers.
  pid_t start_workers(const std::function<Task<>(const kv::KvPartition&)>& watch) {
    // The first one opens the partition, and the others serve it, too. Forked, each server has its
    // own.
    const auto shared = std::make_shared<std::atomic<kv::KvPartition*>>(nullptr);
    std::vector<Body> workers{[this, watch, shared](Thread& thread) -> Task<> {
      const auto partition = find_kv_system(system_).open(thread, "pool", config_);
      thread.executor.spawn(watch(*partition));
      *shared = partition.get();
      co_await partition->serve();
    }};
    while (workers.size() < config_.workers) {
      workers.push_back([shared](Thread& thread) -> Task<> {
        while (*shared == nullptr) co_await yield();
        co_await shared->load()->serve_also(thread);
      });
    }
    return start_threads(0, workers);
  }

  // A session, as soon as the server is there.
  Task<std::unique_ptr<kv::KvSession>> connect(Thread& thread, fabric::Port port = 0) const {
    for (;;) {
      bool failed = false;
      std::unique_ptr<kv::KvSession> session;
      try {
        session = co_await find_kv_system(system_).connect(thread, {0, port}, config_);
      } catch (const PlatformError&) {
        failed = true;
      }
      if (!failed) co_return session;
      co_await yield();
    }
  }

 private:
  std::string system_;
  kv::KvConfig config_;
};

}  // namespace perdura::systems::test
