// How quiet a real host was while a point was measured there (docs/results.md): what else ran,
// and whether the point's own threads had the cores that they needed.
//
// This adds no work to the measured interval: the kernel keeps these counts anyway, and they are
// read before and after.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace perdura::harness {

// A value is absent if the kernel does not report it or the interval was too short for it.
struct HostNoise {
  std::optional<double> load_average{};  // over the last minute before the point
  // Threads per core that ran or waited for one, before the point.
  std::optional<double> runnable_before{};
  // Threads per core, mean over the interval: running threads of all processes, and threads of this
  // process that waited for a core.
  std::optional<double> runnable{};
  std::optional<double> waiting{};        // the waiting ones of these, all cores together
  std::optional<double> steal_percent{};  // time that a hypervisor gave to other guests
  // Slowdown of a loop of fixed work, before or after the point, from the fastest of the whole run.
  std::optional<double> slowdown_percent{};

  // Merges the noise that another process saw, possibly on another host, by taking the noisier
  // value of each.
  void merge(const HostNoise& other);
  // "quiet", "crowded" (more busy threads than cores), "disturbed" (others took some of the cores'
  // time or speed), or "crowded and disturbed".
  std::string mark() const;

  bool operator==(const HostNoise&) const = default;
};

// The kernel's counters at one time.
struct HostCounts {
  std::chrono::steady_clock::time_point at{};
  unsigned cores = 1;       // usable by this process; the next three are for these
  std::uint64_t ticks = 0;  // usually of 10 ms each
  std::uint64_t idle = 0;
  std::uint64_t steal = 0;
  // For this process's threads: the time that they ran, and the time that they were runnable but
  // waited. The kernel may not count the latter.
  std::chrono::nanoseconds ran{};
  std::optional<std::chrono::nanoseconds> waited{};
};
HostCounts host_counts(const std::filesystem::path& proc = "/proc");

// The noise within an interval; values that describe the time before it stay absent.
HostNoise noise_between(const HostCounts& begin, const HostCounts& end);
// The noise before a point; values that describe an interval stay absent.
HostNoise noise_before(const std::filesystem::path& proc = "/proc");

// Times a loop of fixed work, before and after points, while this process is otherwise idle.
class Calibration {
 public:
  // Returns the median time of several runs of the loop. Takes some milliseconds.
  std::chrono::nanoseconds measure();
  // Returns by how many percent `time` exceeds the fastest one measured so far.
  double slowdown_percent(std::chrono::nanoseconds time) const;

 private:
  std::optional<std::chrono::nanoseconds> fastest_;
};

}  // namespace perdura::harness
