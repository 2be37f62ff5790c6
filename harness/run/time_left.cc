#include "harness/run/time_left.h"

namespace perdura::harness {

TimeLeft::TimeLeft(const std::map<std::string, std::size_t>& parts) {
  for (const auto& [kind, count] : parts) kinds_[kind].parts = count;
}

void TimeLeft::ended(const std::string& kind, Seconds cost) {
  Kind& of = kinds_.at(kind);
  ++of.ended;
  of.cost += cost;
}

std::optional<TimeLeft::Seconds> TimeLeft::left(Seconds elapsed) const {
  Seconds to_do{};
  Seconds done{};
  for (const auto& [name, kind] : kinds_) {
    if (kind.parts == 0) continue;
    if (kind.ended == 0) return std::nullopt;
    done += kind.cost;
    to_do += kind.cost * (static_cast<double>(kind.parts) / static_cast<double>(kind.ended) - 1);
  }
  if (done <= Seconds::zero()) return std::nullopt;
  return elapsed * (to_do / done);
}

}  // namespace perdura::harness
