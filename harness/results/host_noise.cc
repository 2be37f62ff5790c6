#include "harness/results/host_noise.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace perdura::harness {
namespace {

namespace fs = std::filesystem;

// On average, half a thread that is ready to run but has no core. One thread too many gives 1; the
// wake-ups of sleeping threads give some hundredths.
constexpr double kCrowded = 0.5;
// A core's speed varies by some percent with its temperature and its neighbors' work; another
// thread on the same core, or a lower frequency, costs much more than a tenth.
constexpr double kSlowdownPercent = 10;
constexpr double kStealPercent = 1;
// With fewer ticks of the kernel's clock a percentage would be too coarse.
constexpr std::uint64_t kFewestTicks = 20;

void keep_larger(std::optional<double>& value, const std::optional<double>& other) {
  if (other && (!value || *other > *value)) value = other;
}

bool at_least(const std::optional<double>& value, double limit) { return value && *value >= limit; }

// A line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal (man 5 proc).
void add_core(std::istringstream& words, HostCounts& counts) {
  std::array<std::uint64_t, 8> ticks{};
  for (std::uint64_t& each : ticks) words >> each;
  for (const std::uint64_t each : ticks) counts.ticks += each;
  counts.idle += ticks[3] + ticks[4];
  counts.steal += ticks[7];
}

// Each iteration depends on the previous one, so that the compiler cannot shorten the loop.
std::uint64_t fixed_work() {
  std::uint64_t value = 88172645463325252ULL;
  for (int i = 0; i < 200'000; ++i) {
    value ^= value << 13U;
    value ^= value >> 7U;
    value ^= value << 17U;
  }
  return value;
}

}  // namespace

void HostNoise::merge(const HostNoise& other) {
  keep_larger(load_average, other.load_average);
  keep_larger(runnable_before, other.runnable_before);
  keep_larger(runnable, other.runnable);
  keep_larger(waiting, other.waiting);
  keep_larger(steal_percent, other.steal_percent);
  keep_larger(slowdown_percent, other.slowdown_percent);
}

std::string HostNoise::mark() const {
  const bool crowded = at_least(waiting, kCrowded);
  const bool disturbed =
      at_least(steal_percent, kStealPercent) || at_least(slowdown_percent, kSlowdownPercent);
  if (crowded && disturbed) return "crowded and disturbed";
  if (crowded) return "crowded";
  return disturbed ? "disturbed" : "quiet";
}

HostCounts host_counts(const fs::path& proc) {
  HostCounts counts{.at = std::chrono::steady_clock::now()};
  cpu_set_t usable;
  CPU_ZERO(&usable);
  // The affinity of the process' first thread counts, since other threads may be pinned to one core
  // each.
  const bool known = sched_getaffinity(getpid(), sizeof usable, &usable) == 0;
  std::ifstream stat(proc / "stat");
  unsigned cores = 0;
  for (std::string line; std::getline(stat, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (!name.starts_with("cpu") || name.size() == 3) continue;
    const auto core = static_cast<std::size_t>(std::atoi(name.c_str() + 3));
    if (known && !CPU_ISSET(core, &usable)) continue;
    ++cores;
    add_core(words, counts);
  }
  counts.cores = std::max(1U, cores);
  std::error_code ignored;
  for (const auto& task : fs::directory_iterator(proc / "self" / "task", ignored)) {
    std::ifstream input(task.path() / "schedstat");
    std::int64_t ran = 0;
    std::int64_t waited = 0;
    if (!(input >> ran >> waited)) continue;
    counts.ran += std::chrono::nanoseconds(ran);
    counts.waited =
        counts.waited.value_or(std::chrono::nanoseconds{}) + std::chrono::nanoseconds(waited);
  }
  return counts;
}

HostNoise noise_between(const HostCounts& begin, const HostCounts& end) {
  HostNoise noise;
  const std::chrono::duration<double> time = end.at - begin.at;
  if (time.count() <= 0 || end.ticks < begin.ticks) return noise;
  const std::uint64_t ticks = end.ticks - begin.ticks;
  const auto part = [&](std::uint64_t later, std::uint64_t earlier) {
    return later < earlier ? 0.0
                           : static_cast<double>(later - earlier) / static_cast<double>(ticks);
  };
  // The counts may decrease, since those of threads that have ended are lost.
  const auto threads = [&](std::chrono::nanoseconds later, std::chrono::nanoseconds earlier) {
    return std::max(0.0, std::chrono::duration<double>(later - earlier).count()) / time.count();
  };
  double running = threads(end.ran, begin.ran);
  if (ticks >= kFewestTicks) {
    noise.steal_percent = 100 * part(end.steal, begin.steal);
    running = std::max(running, (1 - part(end.idle, begin.idle)) * end.cores);
  }
  if (end.waited && begin.waited) {
    noise.waiting = threads(*end.waited, *begin.waited);
    noise.runnable = (running + *noise.waiting) / end.cores;
  }
  return noise;
}

HostNoise noise_before(const fs::path& proc) {
  HostNoise noise;
  std::ifstream input(proc / "loadavg");
  double minute = 0;
  double ignored = 0;
  double running = 0;
  if (!(input >> minute >> ignored >> ignored >> running)) return noise;
  noise.load_average = minute;
  std::ifstream stat(proc / "stat");
  unsigned cores = 0;
  for (std::string line; std::getline(stat, line);) {
    if (line.starts_with("cpu") && line.size() > 3 && line[3] != ' ') ++cores;
  }
  // The thread that reads the load average is itself running, so it is subtracted.
  if (cores > 0) noise.runnable_before = std::max(0.0, running - 1) / cores;
  return noise;
}

std::chrono::nanoseconds Calibration::measure() {
  constexpr std::size_t kLoops = 15;
  std::array<std::chrono::nanoseconds, kLoops> times{};
  volatile std::uint64_t result = 0;
  // The first rounds are not measured: they wake up a core that slept.
  for (int i = 0; i < 5; ++i) result = fixed_work();
  for (std::chrono::nanoseconds& time : times) {
    const auto began = std::chrono::steady_clock::now();
    result = fixed_work();
    time = std::chrono::steady_clock::now() - began;
  }
  static_cast<void>(result);
  std::sort(times.begin(), times.end());
  const auto median = times[kLoops / 2];
  if (!fastest_ || median < *fastest_) fastest_ = median;
  return median;
}

double Calibration::slowdown_percent(std::chrono::nanoseconds time) const {
  if (!fastest_ || fastest_->count() == 0) return 0;
  return 100.0 * (static_cast<double>(time.count()) / static_cast<double>(fastest_->count()) - 1);
}

}  // namespace perdura::harness
