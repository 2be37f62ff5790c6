#include "harness/measure/at_work.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <string>

namespace perdura::measure {

std::uint64_t clock_of_this_host() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return std::hash<std::string>()(boot);
}

std::optional<AllAtWork> all_at_work(std::span<const AtWork> processes) {
  if (processes.empty()) return std::nullopt;
  std::map<std::uint64_t, Time> origins;
  for (const AtWork& process : processes) {
    if (process.begin >= process.end) return std::nullopt;
    const auto [origin, added] = origins.emplace(process.clock, process.begin);
    if (!added) origin->second = std::min(origin->second, process.begin);
  }
  Picoseconds begin = Picoseconds::min();
  Picoseconds end = Picoseconds::max();
  double per_picosecond = 0;
  for (const AtWork& process : processes) {
    const Time origin = origins.at(process.clock);
    begin = std::max(begin, process.begin - origin);
    end = std::min(end, process.end - origin);
    per_picosecond += static_cast<double>(process.operations) /
                      static_cast<double>((process.end - process.begin).count());
  }
  if (begin >= end) return std::nullopt;
  if (processes.size() == 1) {
    return AllAtWork{end - begin, static_cast<double>(processes[0].operations)};
  }
  return AllAtWork{end - begin, per_picosecond * static_cast<double>((end - begin).count())};
}

}  // namespace perdura::measure
