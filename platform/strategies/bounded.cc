#include "platform/strategies/bounded.h"

#include <fmt/format.h>

#include "platform/base/error.h"

namespace perdura::strategies {

bool Bounded::next() {
  if (runs_ > 0) {
    if (!is_new()) {
      throw PlatformError(fmt::format(
          "the run made {} choices, but {} before: it is not deterministic", asked_, run_.first));
    }
    if (run_.deviations.size() < bound_) shorter_.push_back(std::move(run_));
    if (!extend()) return false;
  }
  asked_ = 0;
  made_ = 0;
  ++runs_;
  return true;
}

// Makes the next run: extends the front one of the shorter runs by another deviation after its own.
bool Bounded::extend() {
  for (; !shorter_.empty(); shorter_.pop_front()) {
    const Run& shorter = shorter_.front();
    while (at_ < shorter.alternatives.size() && ++taken_ >= shorter.alternatives[at_]) {
      ++at_;
      taken_ = 0;
    }
    if (at_ < shorter.alternatives.size()) {
      run_.deviations = shorter.deviations;
      run_.deviations.push_back({shorter.first + at_, taken_});
      run_.first = shorter.first + at_ + 1;
      run_.alternatives.clear();
      return true;
    }
    at_ = taken_ = 0;
    const bool last_of_its_number =
        shorter_.size() == 1 || shorter_[1].deviations.size() != shorter.deviations.size();
    extended_ = last_of_its_number ? 0 : extended_ + 1;
  }
  return false;
}

std::size_t Bounded::choose(std::size_t n) {
  const std::uint64_t number = asked_++;
  if (number >= run_.first) {
    run_.alternatives.push_back(static_cast<std::uint32_t>(n));
    return 0;
  }
  const Deviation& next = run_.deviations[made_];
  if (number != next.at) return 0;
  if (next.taken >= n) {
    throw PlatformError(
        fmt::format("choice {} had more than {} alternatives before and has {} now: the run is not "
                    "deterministic",
                    number, next.taken, n));
  }
  ++made_;
  return next.taken;
}

// The share of the runs with the most deviations, which are nearly all.
double Bounded::share() const {
  if (shorter_.empty()) return runs_ > 1 || bound_ == 0 ? 1 : 0;
  const Run& front = shorter_.front();
  if (front.deviations.size() + 1 < bound_) return 0;
  const double of_front =
      front.alternatives.empty()
          ? 1
          : static_cast<double>(at_) / static_cast<double>(front.alternatives.size());
  return (static_cast<double>(extended_) + of_front) /
         static_cast<double>(extended_ + shorter_.size());
}

}  // namespace perdura::strategies
