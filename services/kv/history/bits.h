// A set of small integers; those below 64 need no allocation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace perdura::history {

class Bits {
 public:
  bool test(std::uint32_t bit) const {
    if (bit < 64) return (low_ >> bit & 1) != 0;
    const std::size_t word = bit / 64 - 1;
    return word < rest_.size() && (rest_[word] >> bit % 64 & 1) != 0;
  }
  void set(std::uint32_t bit) {
    if (bit < 64) {
      low_ |= std::uint64_t{1} << bit;
      return;
    }
    const std::size_t word = bit / 64 - 1;
    if (word >= rest_.size()) rest_.resize(word + 1);
    rest_[word] |= std::uint64_t{1} << bit % 64;
  }
  void reset(std::uint32_t bit) {
    if (bit < 64) {
      low_ &= ~(std::uint64_t{1} << bit);
    } else if (bit / 64 - 1 < rest_.size()) {
      rest_[bit / 64 - 1] &= ~(std::uint64_t{1} << bit % 64);
    }
  }

  // True if this set includes `other`, and equals it within `exact`.
  bool covers(const Bits& other, const Bits& exact) const {
    if (!covers(low_, other.low_, exact.low_)) return false;
    const std::size_t words = std::max(rest_.size(), other.rest_.size());
    for (std::size_t word = 0; word < words; ++word) {
      if (!covers(rest(word), other.rest(word), exact.rest(word))) return false;
    }
    return true;
  }

 private:
  static bool covers(std::uint64_t ours, std::uint64_t theirs, std::uint64_t exact) {
    return (theirs & ~ours) == 0 && ((ours ^ theirs) & exact) == 0;
  }
  std::uint64_t rest(std::size_t word) const { return word < rest_.size() ? rest_[word] : 0; }

  std::uint64_t low_ = 0;
  std::vector<std::uint64_t> rest_;
};

}  // namespace perdura::history
