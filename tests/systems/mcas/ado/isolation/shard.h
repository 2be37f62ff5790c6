// A shard whose memory has two pools, of which the process of one is told to attack the other.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

#include "bench/micro/no_keys.h"
#include "platform/shm/shm_platform.h"
#include "systems/mcas/ado/host.h"
#include "systems/mcas/ado/program/program.h"

namespace perdura::systems::mcas::ado::test {

inline constexpr const char* kPools = "pools";
inline constexpr Bytes kPool = 64 * KiB;
inline constexpr Bytes kOther = kPool;  // where the other pool begins, with kSecret
inline constexpr const char* kSecret = "secret";

class TwoPools {
 public:
  // To be made by a task. Both ends of memory of four parts: one is the process' own, one is that
  // of the other pool.
  explicit TwoPools(Thread& thread, LaunchOptions options = {})
      : thread_(thread),
        region_(thread.node.create_region(kPools, 4 * kPool, pmem::Medium::pm)),
        launcher_(make_launcher(thread, std::move(options))) {
    region_->write(kOther, std::as_bytes(std::span(std::string_view(kSecret))));
    region_->persist(kOther, 8);
  }

  ~TwoPools() {
    if (launched_) launched_->end();
  }

  Task<> start(std::string plugin) {
    LaunchOrder order{.pool = "7",
                      .memory = kPools,
                      .parts = {{0, kPool}, {2 * kPool, kPool}},
                      .plugins = {std::move(plugin)}};
    launched_ = co_await launcher_->launch(std::move(order));
    // Tasks of the host may outlive this.
    HostOptions options{.end_process = [launched = launched_] { return launched->end(); }};
    host_ = std::make_shared<Host>(thread_, keys_, std::move(options));
    co_await host_->attach(launched_->process());
  }

  // The answer to a request, or what has become of it.
  Task<std::string> ask(std::string request) {
    WorkMessage order{.key = "key", .request = std::move(request)};
    const CompletionMessage completion = co_await host_->work(order, LockMode::write);
    if (completion.status == WorkStatus::lost) co_return "lost";
    if (completion.status == WorkStatus::failed) co_return completion.error;
    co_return completion.responses.at(0);
  }

  pmem::Region& region() { return *region_; }
  Launched& launched() { return *launched_; }
  Host& host() { return *host_; }

 private:
  Thread& thread_;
  std::unique_ptr<pmem::Region> region_;
  std::shared_ptr<Launcher> launcher_;
  bench::micro::NoKeys keys_;
  std::shared_ptr<Launched> launched_;
  std::shared_ptr<Host> host_;
};

inline void use_built_programs() { ::setenv("PERDURA_PROGRAMS", PERDURA_TEST_PROGRAMS, 1); }

using Body = std::function<Task<>(Thread&, ShmPlatform&)>;
inline void run_shard(const Body& body, CompletionMode mode = CompletionMode::event) {
  use_built_programs();
  ShmPlatform platform(ShmOptions{});
  bool ended = false;
  platform.start(0, 1, mode, [&](Thread& thread) -> Task<> {
    co_await body(thread, platform);
    ended = true;
  });
  platform.run();
  EXPECT_TRUE(ended);
}

// Whether this machine lets tests isolate a process.
inline bool can_isolate() { return ::geteuid() == 0; }

}  // namespace perdura::systems::mcas::ado::test
