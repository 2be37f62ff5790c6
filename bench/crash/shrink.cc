#include "bench/crash/shrink.h"

#include "bench/crash/generated_run.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace perdura::bench {

namespace {

// In which order streams are made simpler: the lower, the sooner.
std::size_t rank_of(std::string_view stream) {
  // The more of a run goes with a stream, the sooner. What an image loses comes last, since all
  // else decides about what can be lost.
  constexpr std::array<std::string_view, 6> kFirst{"filling", "client-", "failure-",
                                                   "death-",  "stall-",  "store"};
  if (stream.starts_with("image-")) return kFirst.size() + 1;
  const auto* const known = std::find_if(kFirst.begin(), kFirst.end(), [&](std::string_view name) {
    return stream.starts_with(name);
  });
  return static_cast<std::size_t>(known - kFirst.begin());
}

class Shrinker {
 public:
  Shrinker(pmem::Tape::Streams tape, const std::function<bool(const pmem::Tape::Streams&)>& fails,
           std::uint64_t most_runs)
      : best_(std::move(tape)), fails_(fails), most_runs_(most_runs) {}

  Shrunk shrink() {
    lose_everything();
    for (bool simpler = true; simpler && runs_ < most_runs_;) {
      simpler = false;
      const std::vector<std::string> streams = in_order();
      for (const std::string& name : streams) simpler = clear_stream(name) || simpler;
      // Ranges before single choices: most of a tape has nothing to do with the failure.
      for (const std::string& name : streams) simpler = clear_ranges(name) || simpler;
      for (const std::string& name : streams) simpler = lower_values(name) || simpler;
    }
    return {std::move(best_), runs_};
  }

 private:
  // Zeros at the end of a stream mean the same as its end.
  static bool equal(const pmem::Tape::Streams& a, const pmem::Tape::Streams& b) {
    return pmem::to_string(a) == pmem::to_string(b);
  }

  bool try_tape(pmem::Tape::Streams candidate) {
    if (runs_ >= most_runs_ || equal(candidate, best_)) return false;
    ++runs_;
    if (!fails_(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  // Of streams with the same rank, those with higher numbers come first.
  std::vector<std::string> in_order() const {
    std::vector<std::string> names;
    for (const auto& [name, values] : best_) names.push_back(name);
    std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
      return rank_of(a) != rank_of(b) ? rank_of(a) < rank_of(b) : a > b;
    });
    return names;
  }

  bool clear_stream(const std::string& name) {
    pmem::Tape::Streams candidate = best_;
    candidate[name].clear();
    return try_tape(std::move(candidate));
  }

  // With the image that keeps the least, nothing that was left out can have been what mattered; so
  // less of the run is needed to fail. What need not be lost is found out last.
  void lose_everything() {
    constexpr std::uint64_t kLeast = 0xFFFF;  // more than the alternatives of any choice
    constexpr std::size_t kFragments = 256;   // more than a small history has at a moment
    pmem::Tape::Streams candidate = best_;
    for (auto& [name, values] : candidate) {
      if (name.starts_with("image-")) values.assign(kFragments, kLeast);
    }
    try_tape(std::move(candidate));
  }

  // Replaces ranges of choices by zeros, halving their length from that of the whole stream.
  bool clear_ranges(const std::string& name) {
    bool simpler = false;
    for (std::size_t length = best_[name].size(); length > 0; length /= 2) {
      for (std::size_t begin = 0; begin < best_[name].size(); begin += length) {
        pmem::Tape::Streams candidate = best_;
        std::vector<std::uint64_t>& values = candidate[name];
        const std::size_t end = std::min(begin + length, values.size());
        const auto first = values.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto last = values.begin() + static_cast<std::ptrdiff_t>(end);
        if (std::all_of(first, last, [](std::uint64_t value) { return value == 0; })) continue;
        std::fill(first, last, 0);
        simpler =
            try_tape(candidate) ||
            (name.starts_with("client-") && length <= 2 && try_with_earlier_failures(candidate)) ||
            simpler;
      }
    }
    return simpler;
  }

  // An operation less has a beginning and an end less, so what follows it comes that much earlier.
  bool try_with_earlier_failures(const pmem::Tape::Streams& tape) {
    for (const auto& [name, values] : tape) {
      if (!name.starts_with("failure-") || values.size() <= kMomentOfFailure) continue;
      for (const std::uint64_t earlier : {2, 1}) {
        if (values[kMomentOfFailure] < earlier) continue;
        pmem::Tape::Streams candidate = tape;
        candidate[name][kMomentOfFailure] -= earlier;
        if (try_tape(std::move(candidate))) return true;
      }
    }
    return false;
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
