// Runs a litmus test on any platform. All nodes of the platform must be in the calling process.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "platform/litmus/litmus.h"
#include "platform/platform.h"

namespace perdura::litmus {

struct RunOptions {
  std::uint64_t times = 1;
  std::uint64_t seed = 1;
  // Before every second step on average, threads sleep for a random time up to this one: threads
  // that begin together would otherwise always meet at the same step.
  Picoseconds longest_pause{};
  // Makes threads suspend between any two steps, for platforms on which the next thread is chosen
  // at suspensions.
  bool suspend_between_steps = false;
  CompletionMode mode = CompletionMode::polling;
  // Called when all threads are about to begin.
  std::function<void()> before_start{};
};

using Results = std::map<Result, std::uint64_t>;  // how often each result was seen

// A running test. The platform must be new and have Litmus::nodes nodes.
class Run {
 public:
  Run(const Litmus& litmus, Platform& platform, const RunOptions& options);
  ~Run();

  // Runs the platform. Throws the exceptions of Platform::run(), and PlatformError if an operation
  // fails.
  Results finish();

  // Appends the threads' results and positions, and the memory of the test. To be called while a
  // simulation runs.
  void append_state(std::string& state) const;

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
  Platform& platform_;
};

}  // namespace perdura::litmus
