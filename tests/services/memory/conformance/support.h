// One suite for all systems of replicated memory on all platforms: each test is run for every pair.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "services/memory/memory.h"
#include "systems/registry/registry.h"
#include "tests/support/platforms.h"

namespace perdura::services::test {

struct Subject {
  std::string system;
  std::string platform;
};

inline std::ostream& operator<<(std::ostream& out, const Subject& subject) {
  return out << subject.system << " on " << subject.platform;
}

inline std::vector<Subject> all_subjects() {
  std::vector<Subject> subjects;
  for (const MemorySystem& system : systems::memory_systems()) {
    for (const std::string& platform : perdura::test::platform_names()) {
      subjects.push_back({std::string(system.info.name), platform});
    }
  }
  return subjects;
}

inline std::string subject_name(const testing::TestParamInfo<Subject>& info) {
  std::string name = info.param.system + "_" + info.param.platform;
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
}

// The nodes of a system, with as few copies as it has at least: node 0 is the primary, whose
// applications' threads are at the ports from 100 on.
class MemoryTest : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    config_.nodes.clear();
    for (NodeId node = 0; node <= system().copies.least; ++node) config_.nodes.push_back(node);
    platform_ = perdura::test::make_platform(GetParam().platform, 4);
  }

  const MemorySystem& system() const { return systems::find_memory_system(GetParam().system); }
  bool is_replicated() const { return system().copies.least > 0; }

  using Application = std::function<Task<>(MappedMemory&, Thread&)>;
  // A thread of an application.
  void apply(Application application) { applications_.push_back(std::move(application)); }
  // Beside a copy's own threads.
  using Reader = std::function<Task<>(MemoryReplica&, Thread&)>;
  void read_copies(Reader reader) { reader_ = std::move(reader); }
  // When all applications have ended.
  using Ended = std::function<void(MemoryReplica&)>;
  void run(Ended look_at_copy = {}) {
    config_.threads = static_cast<std::uint32_t>(applications_.size());
    const std::uint32_t workers = system().workers(config_);
    const auto copies = static_cast<std::uint32_t>(config_.nodes.size() - 1);
    opened_ = platform_->create_barrier(1 + copies * workers + config_.threads);
    ended_ = platform_->create_barrier(config_.threads + copies);
    looked_ = platform_->create_barrier(config_.threads + copies);
    replicas_.resize(config_.nodes.size());
    platform_->start_service(0, 99, CompletionMode::polling, [this](Thread& thread) -> Task<> {
      replicas_[0] = system().open(thread, "memory", config_, MemoryRole::primary);
      co_await opened_->arrive_and_wait();
    });
    for (std::uint32_t copy = 1; copy <= copies; ++copy) {
      for (std::uint32_t worker = 0; worker < workers; ++worker) {
        platform_->start_service(copy, static_cast<fabric::Port>(worker), CompletionMode::polling,
                                 [this, worker, look_at_copy](Thread& thread) {
                                   return serve(thread, worker, look_at_copy);
                                 });
      }
    }
    for (std::uint32_t number = 0; number < config_.threads; ++number) {
      platform_->start(0, static_cast<fabric::Port>(100 + number), CompletionMode::polling,
                       [this, number](Thread& thread) { return use(thread, number); });
    }
    platform_->run();
  }

  MemoryConfig config_{.size = 256 * KiB};
  std::unique_ptr<Platform> platform_;

 private:
  Task<> serve(Thread& thread, std::uint32_t worker, Ended look_at_copy) {
    const NodeId node = thread.node.id();
    if (worker == 0) {
      const MemoryRole role = node == 1 ? MemoryRole::mirror : MemoryRole::backup;
      replicas_[node] = system().open(thread, "memory", config_, role);
      thread.executor.spawn(look(thread, node, look_at_copy));
    }
    co_await opened_->arrive_and_wait();
    co_await replicas_[node]->serve(thread);
  }

  Task<> look(Thread& thread, NodeId node, Ended look_at_copy) {
    if (reader_) thread.executor.spawn(reader_(*replicas_[node], thread));
    co_await ended_->arrive_and_wait();
    // On a real platform it may have to wait for a core.
    const Picoseconds patience = std::chrono::seconds(platform_->modelled() ? 1 : 60);
    const Time since = thread.executor.now();
    while (replicas_[node]->position() != replicas_[0]->position()) {
      co_await sleep_for(Microseconds(10));
      if (thread.executor.now() - since < patience) continue;
      ADD_FAILURE() << "the copy of node " << node << " does not get all that was synced";
      break;
    }
    if (look_at_copy) look_at_copy(*replicas_[node]);
    co_await looked_->arrive_and_wait();
  }

  Task<> use(Thread& thread, std::uint32_t number) {
    co_await opened_->arrive_and_wait();
    const auto memory = co_await replicas_[0]->map(thread);
    co_await applications_[number](*memory, thread);
    co_await memory->settle();
    co_await ended_->arrive_and_wait();
    co_await looked_->arrive_and_wait();
  }

  std::vector<Application> applications_;
  Reader reader_;
  std::unique_ptr<Platform::Barrier> opened_;
  std::unique_ptr<Platform::Barrier> ended_;
  std::unique_ptr<Platform::Barrier> looked_;
  std::vector<std::shared_ptr<MemoryReplica>> replicas_;
};

}  // namespace perdura::services::test
