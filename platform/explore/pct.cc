#include "platform/explore/pct.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace perdura::explore {

Pct::Pct(std::uint64_t seed, std::uint32_t depth, std::uint64_t most_runs)
    : seed_(seed), depth_(std::max(depth, 1U)), most_runs_(most_runs), random_(seed) {}

// RandomChoices draws among at most 2^32 alternatives.
std::uint64_t Pct::draw(std::uint64_t below) { return random_.choose(below); }

void Pct::note_size() {
  choices_ = std::max(choices_, at_);
  agents_ = std::max<std::uint64_t>(agents_, priorities_.size());
}

bool Pct::next() {
  note_size();
  if (runs_ == most_runs_) return false;
  random_ = pmem::RandomChoices(seed_ + runs_++);
  priorities_.clear();
  changes_.clear();
  at_ = 0;
  for (std::uint32_t i = 1; i < depth_ && choices_ > 0; ++i) {
    changes_.emplace(draw(choices_), depth_ - i);
  }
  return true;
}

std::size_t Pct::choose(std::size_t n) {
  const std::uint64_t first = at_;
  at_ += n - 1;
  const auto change = changes_.lower_bound(first);
  if (change == changes_.end() || change->first >= at_) return 0;
  return static_cast<std::size_t>(change->first - first + 1);
}

std::size_t Pct::choose_step(std::span<const pmem::NextStep> steps) {
  // Above those of all changes.
  for (const pmem::NextStep& step : steps) {
    if (!priorities_.contains(step.agent)) {
      priorities_[step.agent] = depth_ + draw(std::uint64_t{1} << 32);
    }
  }
  const auto highest = [&] {
    return std::max_element(steps.begin(), steps.end(), [&](const auto& a, const auto& b) {
      return priorities_[a.agent] < priorities_[b.agent];
    });
  };
  const auto [begin, end] = changes_.equal_range(at_++);
  for (auto change = begin; change != end; ++change) {
    priorities_[highest()->agent] = change->second;
  }
  return static_cast<std::size_t>(highest() - steps.begin());
}

double Pct::probability() const {
  const double k = std::max(1.0, static_cast<double>(choices_));
  return 1 / (static_cast<double>(agents_) * std::pow(k, depth_ - 1));
}

}  // namespace perdura::explore
