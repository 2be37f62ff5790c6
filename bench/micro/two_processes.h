// Runs benchmarks between two processes over shared memory.
#pragma once

#include <benchmark/benchmark.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>

#include "platform/fabric/shm/job.h"
#include "platform/shm/shm_platform.h"

namespace perdura::bench::micro {

// Runs `here` on a thread of node 0, in this process, and the service `there` on one of node 1, in
// another process, until `here` has ended. Both poll, at ports of this number.
inline void run_in_two_processes(benchmark::State& state, fabric::Port port,
                                 const Platform::Body& here, const Platform::Body& there) {
  ShmOptions options;
  options.node_count = 2;
  options.accounting = pmem::WriteMeter::Level::issued;
  // Files left by a process that was killed are removed by the next one.
  options.job = fabric::shm::automatic_name("micro-" + std::to_string(::getpid()));
  // Forking is safe here: the process has no other threads, since a platform's threads end with its
  // run.
  std::fflush(nullptr);
  const pid_t other = ::fork();
  if (other < 0) return state.SkipWithError("cannot fork");
  if (other == 0) {
    int code = 0;
    try {
      options.local_nodes = {1};
      ShmPlatform platform(options);
      platform.start_service(1, port, CompletionMode::polling, there);
      platform.run();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "the other process: %s\n", error.what());
      code = 1;
    }
    ::_exit(code);
  }
  try {
    options.local_nodes = {0};
    ShmPlatform platform(options);
    platform.start(0, port, CompletionMode::polling, here);
    platform.run();
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
  int status = 0;
  if (::waitpid(other, &status, 0) != other || status != 0) {
    state.SkipWithError("the other process failed");
  }
}

}  // namespace perdura::bench::micro
