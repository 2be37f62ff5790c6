#include "platform/strategies/pct.h"

#include <algorithm>
#include <cmath>

namespace perdura::strategies {

PctRun::PctRun(pmem::Choices& draws, std::uint32_t depth, std::uint64_t choices) : draws_(draws) {
  for (std::uint32_t i = 1; i < depth && choices > 0; ++i) {
    changes_.emplace(draws_.choose(choices), depth - i);
  }
}

std::size_t PctRun::choose(std::size_t n) {
  const std::uint64_t first = at_;
  at_ += n - 1;
  const auto change = changes_.lower_bound(first);
  if (change == changes_.end() || change->first >= at_) return 0;
  return static_cast<std::size_t>(change->first - first + 1);
}

std::size_t PctRun::choose_step(std::span<const pmem::NextStep> steps) {
  for (const pmem::NextStep& step : steps) rank(step.agent);
  const auto highest = [&] {
    return std::max_element(steps.begin(), steps.end(), [&](const auto& a, const auto& b) {
      return priority_of(a.agent) < priority_of(b.agent);
    });
  };
  const auto [begin, end] = changes_.equal_range(at_++);
  for (auto change = begin; change != end; ++change) {
    lowered_[highest()->agent] = change->second;
  }
  return static_cast<std::size_t>(highest() - steps.begin());
}

// Makes all orders of the agents equally probable, whenever each of them appears.
void PctRun::rank(std::uint64_t agent) {
  if (std::find(ranked_.begin(), ranked_.end(), agent) != ranked_.end()) return;
  const std::size_t below = draws_.choose(ranked_.size() + 1);
  ranked_.insert(ranked_.begin() + static_cast<std::ptrdiff_t>(below), agent);
}

PctRun::Priority PctRun::priority_of(std::uint64_t agent) const {
  if (const auto found = lowered_.find(agent); found != lowered_.end()) {
    return {true, found->second};
  }
  const auto place = std::find(ranked_.begin(), ranked_.end(), agent);
  return {false, static_cast<std::uint64_t>(place - ranked_.begin())};
}

Pct::Pct(std::uint64_t seed, std::uint32_t depth, std::uint64_t most_runs)
    : seed_(seed), depth_(std::max(depth, 1U)), most_runs_(most_runs), random_(seed) {}

void Pct::note_size() {
  if (!run_) return;
  choices_ = std::max(choices_, run_->choices());
  agents_ = std::max(agents_, run_->agents());
}

// RandomChoices draws among at most 2^32 alternatives.
bool Pct::next() {
  note_size();
  if (runs_ == most_runs_) return false;
  random_ = pmem::RandomChoices(seed_ + runs_++);
  run_.emplace(random_, depth_, choices_);
  return true;
}

double Pct::probability() const {
  const double n = std::max(1.0, static_cast<double>(agents_));
  const double k = std::max(1.0, static_cast<double>(choices_));
  return 1 / (n * std::pow(k, depth_ - 1));
}

}  // namespace perdura::strategies
