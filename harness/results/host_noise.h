// How quiet a real host was while a point was measured there (docs/results.md): what else ran,
// and whether the point's own threads had the cores that they needed.
//
// Nothing runs for it within the measured interval: the kernel counts anyway, and is asked before
// and after.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace perdura::harness {

// What is absent the kernel does not say, or the interval was too short for it.
struct HostNoise {
  std::optional<double> load_average{};     // of the last minute, before the point
  std::optional<double> runnable_before{};  // threads per core that ran or waited for one, likewise
  std::optional<double> runnable{};  // threads per core, mean over the interval: those that ran,
                                     // whoever's, and those of this process that waited for a core
  std::optional<double> waiting{};   // of these the latter, all cores together
  std::optional<double> steal_percent{};     // time that a hypervisor gave to others
  std::optional<double> slowdown_percent{};  // of a loop of fixed work, before or after the point,
                                             // beside the fastest of the whole run

  // Of another process, perhaps on another host: the noisier of each.
  void merge(const HostNoise& other);
  // "quiet", "crowded" (more busy threads than cores), "disturbed" (somebody else took of the
  // cores' time or speed), or "crowded and disturbed".
  std::string mark() const;

  bool operator==(const HostNoise&) const = default;
};

// What the kernel has counted until a moment.
struct HostCounts {
  std::chrono::steady_clock::time_point at{};
  unsigned cores = 1;       // that this process may use; the next three are of these
  std::uint64_t ticks = 0;  // of 10 ms, as a rule
  std::uint64_t idle = 0;
  std::uint64_t steal = 0;
  // Of this process' threads: time that they ran, and that they were ready to run and did not. The
  // kernel may not count the latter.
  std::chrono::nanoseconds ran{};
  std::optional<std::chrono::nanoseconds> waited{};
};
HostCounts host_counts(const std::filesystem::path& proc = "/proc");

// Of an interval; only what can be told of one.
HostNoise noise_between(const HostCounts& begin, const HostCounts& end);
// Before a point; only what can be told then.
HostNoise noise_before(const std::filesystem::path& proc = "/proc");

// Times a loop of fixed work, before and after points, while this process is idle otherwise.
class Calibration {
 public:
  // Some milliseconds. The time of a loop, the median of several.
  std::chrono::nanoseconds measure();
  // How much longer than the fastest of all that were measured so far.
  double slowdown_percent(std::chrono::nanoseconds time) const;

 private:
  std::optional<std::chrono::nanoseconds> fastest_;
};

}  // namespace perdura::harness
