#include "platform/pmem/model/choices.h"

#include <fmt/format.h>

#include "platform/base/error.h"

namespace perdura::pmem {

namespace {

// The output function of splitmix64.
std::uint64_t mix(std::uint64_t bits) {
  bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9;
  bits = (bits ^ bits >> 27) * 0x94D049BB133111EB;
  return bits ^ bits >> 31;
}

}  // namespace

RandomChoices::RandomChoices(std::uint64_t seed) : state_(mix(seed + 0x632BE59BD9B4E019)) {}

// The number is scaled by a multiplication rather than a distribution of the standard library,
// since those differ between implementations.
std::size_t RandomChoices::choose(std::size_t n) {
  state_ += 0x9E3779B97F4A7C15;
  return static_cast<std::size_t>((mix(state_) >> 32) * n >> 32);
}

bool Enumerator::next() {
  if (sequences_ > 0) {
    path_.resize(depth_);
    while (!path_.empty() && path_.back().taken + 1 == path_.back().of) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().taken;
  }
  depth_ = 0;
  ++sequences_;
  return true;
}

std::size_t Enumerator::choose(std::size_t n) {
  if (depth_ == path_.size()) path_.push_back({0, n});
  const Choice& choice = path_[depth_];
  if (choice.of != n) {
    throw PlatformError(fmt::format(
        "choice {} was one of {} before and is one of {} now: the run is not deterministic", depth_,
        choice.of, n));
  }
  ++depth_;
  return choice.taken;
}

}  // namespace perdura::pmem
