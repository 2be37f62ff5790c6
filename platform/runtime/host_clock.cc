#include "platform/runtime/host_clock.h"

#include <cpuid.h>
#include <time.h>

#include <fstream>
#include <string>

namespace perdura::runtime {
namespace {

constexpr std::uint64_t kMeasureFor = 5'000'000;  // in nanoseconds

std::uint64_t monotonic_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

bool counter_is_a_clock() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  constexpr unsigned kPowerManagement = 0x80000007;
  constexpr unsigned kInvariantCounter = 1U << 8;
  if (__get_cpuid(kPowerManagement, &a, &b, &c, &d) == 0 || (d & kInvariantCounter) == 0) {
    return false;
  }
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string source;
  return file >> source && source == "tsc";
}

struct Moment {
  std::uint64_t tick;
  std::uint64_t ns;
};

// Reads both clocks as nearly at the same moment as possible. Each attempt reads the counter before
// and after the other clock; the attempt with the least time between its two readings of the
// counter counts.
template <class ReadCounter>
Moment read_both(ReadCounter read_counter) {
  Moment best{};
  std::uint64_t narrowest = ~std::uint64_t{0};
  for (int attempt = 0; attempt < 16; ++attempt) {
    const std::uint64_t before = read_counter();
    __builtin_ia32_lfence();
    const std::uint64_t ns = monotonic_ns();
    __builtin_ia32_lfence();
    const std::uint64_t after = read_counter();
    if (after - before >= narrowest) continue;
    narrowest = after - before;
    best = {before + narrowest / 2, ns};
  }
  return best;
}

}  // namespace

Time HostClock::read_monotonic() const { return Time(Nanoseconds(monotonic_ns() - epoch)); }

std::uint64_t HostClock::measure_scale() {
  const Moment first = read_both(read_counter);
  while (monotonic_ns() - first.ns < kMeasureFor) __builtin_ia32_pause();
  const Moment last = read_both(read_counter);
  const Wide picoseconds = Wide{last.ns - first.ns} * 1000;
  return static_cast<std::uint64_t>((picoseconds << 32) / (last.tick - first.tick));
}

HostClock HostClock::start() {
  static const std::uint64_t measured = counter_is_a_clock() ? measure_scale() : 0;
  if (measured == 0) return start_without_counter();
  const Moment now = read_both(read_counter);
  return {now.ns, now.tick, measured};
}

HostClock HostClock::start_without_counter() { return {monotonic_ns(), 0, 0}; }

}  // namespace perdura::runtime
