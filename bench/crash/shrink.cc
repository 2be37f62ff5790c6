#include "bench/crash/shrink.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace perdura::bench {

namespace {

class Shrinker {
 public:
  Shrinker(pmem::Tape::Streams tape, const std::function<bool(const pmem::Tape::Streams&)>& fails,
           std::uint64_t most_runs)
      : best_(std::move(tape)), fails_(fails), most_runs_(most_runs) {}

  Shrunk shrink() {
    for (bool simpler = true; simpler && runs_ < most_runs_;) {
      simpler = false;
      // Ranges before single choices: most of a tape has nothing to do with the failure.
      for (const auto& [name, values] : pmem::Tape::Streams(best_)) {
        simpler = clear_ranges(name) || simpler;
      }
      for (const auto& [name, values] : pmem::Tape::Streams(best_)) {
        simpler = lower_values(name) || simpler;
      }
    }
    return {std::move(best_), runs_};
  }

 private:
  bool try_tape(pmem::Tape::Streams candidate) {
    if (candidate == best_ || runs_ >= most_runs_) return false;
    ++runs_;
    if (!fails_(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  // Replaces ranges of choices by zeros, halving their length from that of the whole stream.
  bool clear_ranges(const std::string& name) {
    bool simpler = false;
    for (std::size_t length = best_[name].size(); length > 0; length /= 2) {
      for (std::size_t begin = 0; begin < best_[name].size(); begin += length) {
        pmem::Tape::Streams candidate = best_;
        std::vector<std::uint64_t>& values = candidate[name];
        const std::size_t end = std::min(begin + length, values.size());
        std::fill(values.begin() + static_cast<std::ptrdiff_t>(begin),
                  values.begin() + static_cast<std::ptrdiff_t>(end), 0);
        simpler = try_tape(std::move(candidate)) || simpler;
      }
    }
    return simpler;
  }

  // Finds a smaller value for each choice by bisection, as if smaller ones failed no more from some
  // value on.
  bool lower_values(const std::string& name) {
    bool simpler = false;
    for (std::size_t i = 0; i < best_[name].size(); ++i) {
      std::uint64_t least = 0;
      while (least < best_[name][i]) {
        const std::uint64_t middle = least + (best_[name][i] - least) / 2;
        pmem::Tape::Streams candidate = best_;
        candidate[name][i] = middle;
        if (try_tape(std::move(candidate))) {
          simpler = true;
        } else {
          least = middle + 1;
        }
        if (runs_ >= most_runs_) return simpler;
      }
    }
    return simpler;
  }

  pmem::Tape::Streams best_;
  const std::function<bool(const pmem::Tape::Streams&)>& fails_;
  std::uint64_t most_runs_;
  std::uint64_t runs_ = 0;
};

}  // namespace

Shrunk shrink(pmem::Tape::Streams tape,
              const std::function<bool(const pmem::Tape::Streams&)>& fails,
              std::uint64_t most_runs) {
  return Shrinker(std::move(tape), fails, most_runs).shrink();
}

}  // namespace perdura::bench
