#include "platform/strategies/sleep_sets.h"

#include <algorithm>

#include "platform/base/error.h"

namespace perdura::strategies {

namespace {

using pmem::NextStep;

bool contains(const std::vector<NextStep>& steps, const NextStep& step) {
  return std::any_of(steps.begin(), steps.end(),
                     [&](const NextStep& other) { return other.agent == step.agent; });
}

// The first step from number `from` on that does not sleep, or the number of steps.
std::size_t awake(const std::vector<NextStep>& steps, const std::vector<NextStep>& asleep,
                  std::size_t from) {
  while (from < steps.size() && contains(asleep, steps[from])) ++from;
  return from;
}

}  // namespace

bool SleepSets::next() {
  if (runs_ > 0) {
    path_.resize(depth_);
    while (!path_.empty() && !advance(path_.back())) path_.pop_back();
    if (path_.empty()) return false;
  }
  depth_ = 0;
  asleep_.clear();
  ++runs_;
  return true;
}

// Takes the next alternative of a choice; returns false if there is none.
bool SleepSets::advance(Choice& choice) {
  if (choice.steps.empty()) return ++choice.taken < choice.of;
  choice.asleep.push_back(choice.steps[choice.taken]);
  choice.taken = awake(choice.steps, choice.asleep, choice.taken + 1);
  return choice.taken < choice.of;
}

std::size_t SleepSets::choose(std::size_t n) {
  if (depth_ == path_.size()) path_.push_back({{}, {}, 0, n});
  if (path_[depth_].of != n || !path_[depth_].steps.empty()) {
    throw PlatformError("the run asks for other choices than before: it is not deterministic");
  }
  return path_[depth_++].taken;
}

std::size_t SleepSets::choose_step(std::span<const NextStep> steps) {
  if (depth_ == path_.size()) {
    Choice choice{{steps.begin(), steps.end()}, asleep_, 0, steps.size()};
    choice.taken = awake(choice.steps, choice.asleep, 0);
    if (choice.taken == choice.of) {
      ++cut_;
      throw Equivalent();
    }
    path_.push_back(std::move(choice));
  }
  const Choice& choice = path_[depth_++];
  const bool same = std::equal(steps.begin(), steps.end(), choice.steps.begin(), choice.steps.end(),
                               [](const NextStep& a, const NextStep& b) {
                                 return a.agent == b.agent && a.touches == b.touches;
                               });
  if (!same) {
    throw PlatformError("the run asks for other choices than before: it is not deterministic");
  }
  const NextStep& taken = choice.steps[choice.taken];
  asleep_.clear();
  for (const NextStep& step : choice.asleep) {
    if ((step.touches & taken.touches) == 0) asleep_.push_back(step);
  }
  return choice.taken;
}

}  // namespace perdura::strategies
