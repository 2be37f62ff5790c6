// Runs a litmus test on a platform, whichever it is. All its nodes must be in the calling process.
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
  // Before every other step, at random, threads sleep for up to so long: threads that begin
  // together would always meet at the same step.
  Picoseconds longest_pause{};
  // Threads suspend between any two steps: on a platform that decides at suspensions which thread
  // goes on.
  bool suspend_between_steps = false;
  CompletionMode mode = CompletionMode::polling;
  // Called when all threads are about to begin.
  std::function<void()> before_start{};
};

using Results = std::map<Result, std::uint64_t>;  // how often each was seen

// A test on its way. The platform is new and has Litmus::nodes nodes.
class Run {
 public:
  Run(const Litmus& litmus, Platform& platform, const RunOptions& options);
  ~Run();

  // Runs the platform. Throws what that throws, and PlatformError if an operation fails.
  Results finish();

  // Appends what the threads have got and where they are, and the memory of the test. While a
  // simulation runs.
  void append_state(std::string& state) const;

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
  Platform& platform_;
};

}  // namespace perdura::litmus
