#include "explore/shrink.h"

#include "explore/generated_run.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace perdura::explore {

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

// The choice of an image with which nothing of a change survives, if nothing is its most frequent
// outcome (PersistenceState::image()). Greater choices would only take longer to be shrunk.
constexpr std::uint64_t kLeast = 2;

class Shrinker {
 public:
  Shrinker(pmem::Tape::Streams tape, const std::function<bool(const pmem::Tape::Streams&)>& fails,
           const ShrinkLimits& limits)
      : best_(std::move(tape)), fails_(fails), limits_(limits) {
    for (const auto& [name, values] : best_) {
      if (happens(name, values)) ++epochs_;
      if (is_client(name)) choices_[name] = values.size();
    }
  }

  Shrunk shrink() {
    lose_everything();
    do {
      make_simpler();
    } while (leave_out_at_other_times());
    return {std::move(best_), runs_, stopped_};
  }

 private:
  static bool is_client(std::string_view stream) { return stream.starts_with("client-"); }
  static bool is_failure(std::string_view stream) { return stream.starts_with("failure-"); }
  static bool is_image(std::string_view stream) { return stream.starts_with("image-"); }
  static bool happens(std::string_view stream, const std::vector<std::uint64_t>& values) {
    return is_failure(stream) && !values.empty() && values.front() != 0;
  }

  void make_simpler() {
    for (bool simpler = true; simpler && goes_on();) {
      simpler = false;
      const std::vector<std::string> streams = in_order();
      for (const std::string& name : streams) simpler = clear_stream(name) || simpler;
      simpler = leave_out_failures() || simpler;
      // Ranges before single choices: most of a tape has nothing to do with the failure.
      for (const std::string& name : streams) simpler = clear_ranges(name) || simpler;
      for (const std::string& name : streams) simpler = lower_values(name) || simpler;
    }
  }

  bool goes_on() {
    if (!stopped_ && limits_.stop && limits_.stop()) stopped_ = true;
    return !stopped_ && runs_ < limits_.most_runs;
  }

  // Zeros at the end of a stream mean the same as its end.
  static bool equal(const pmem::Tape::Streams& a, const pmem::Tape::Streams& b) {
    return pmem::to_string(a) == pmem::to_string(b);
  }

  bool try_tape(pmem::Tape::Streams candidate) {
    if (equal(candidate, best_) || !goes_on()) return false;
    ++runs_;
    if (!fails_(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  // Streams by rank; within a rank those with higher numbers come first.
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
    constexpr std::size_t kFragments = 256;  // more than a small history has at a crash point
    pmem::Tape::Streams candidate = best_;
    for (auto& [name, values] : candidate) {
      if (is_image(name)) values.assign(kFragments, kLeast);
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
        simpler = try_tape(candidate) ||
                  (is_client(name) && length <= 2 && try_with_earlier_failures(candidate)) ||
                  simpler;
      }
    }
    return simpler;
  }

  // An operation less has a beginning and an end less, so what follows it comes that much earlier.
  bool try_with_earlier_failures(const pmem::Tape::Streams& tape) {
    for (const auto& [name, values] : tape) {
      if (!is_failure(name) || values.size() <= kTriggerOfFailure) continue;
      for (const std::uint64_t earlier : {2, 1}) {
        if (values[kTriggerOfFailure] < earlier) continue;
        pmem::Tape::Streams candidate = tape;
        candidate[name][kTriggerOfFailure] -= earlier;
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
        if (stopped_ || runs_ >= limits_.most_runs) return simpler;
      }
    }
    return simpler;
  }

  // A failure goes together with what the clients do before it or after it.
  bool leave_out_failures() {
    bool simpler = false;
    std::vector<std::string> failures;
    for (const auto& [name, values] : best_) {
      if (happens(name, values)) failures.push_back(name);
    }
    for (std::size_t number = failures.size(); number-- > 0;) {
      for (const std::size_t epoch : {number, number + 1}) {
        pmem::Tape::Streams candidate = best_;
        candidate[failures[number]].clear();
        for (const auto& [name, count] : choices_) {
          leave_out(candidate[name], places_of_epoch(count, epochs_, epoch));
        }
        if (!try_tape(std::move(candidate))) continue;
        simpler = true;
        break;
      }
    }
    return simpler;
  }

  static void leave_out(std::vector<std::uint64_t>& values, EpochPlaces places) {
    const auto at = [&](std::size_t place) {
      return values.begin() + static_cast<std::ptrdiff_t>(std::min(place, values.size()));
    };
    values.erase(at(places.begin), at(places.end));
  }

  // True if the tape has become simpler.
  bool leave_out_at_other_times() {
    constexpr std::uint64_t kMostTries = 400;
    for (std::uint64_t tries = 0; tries < kMostTries && goes_on(); ++tries) {
      pmem::Tape::Streams candidate = best_;
      if (!leave_out_some(candidate)) return false;
      for (auto& [name, values] : candidate) {
        if (happens(name, values) && random_.choose(2) == 0) draw_time(values);
        if (is_image(name) && random_.choose(2) == 0) draw_image(values);
      }
      if (try_tape(std::move(candidate))) return true;
    }
    return false;
  }

  // False if clients do nothing.
  bool leave_out_some(pmem::Tape::Streams& tape) {
    constexpr std::size_t kMostAtOnce = 3;
    std::vector<std::uint64_t*> choices;
    for (auto& [name, values] : tape) {
      for (std::uint64_t& value : values) {
        if (is_client(name) && value != 0) choices.push_back(&value);
      }
    }
    if (choices.empty()) return false;
    const std::size_t first = random_.choose(choices.size());
    const std::size_t count = 1 + random_.choose(std::min(kMostAtOnce, choices.size() - first));
    for (std::size_t i = first; i < first + count; ++i) *choices[i] = 0;
    return true;
  }

  // A crash point somewhere around an operation that is not later than the one before.
  void draw_time(std::vector<std::uint64_t>& failure) {
    constexpr std::size_t kWindow = kTriggerOfFailure + 1;
    constexpr std::size_t kDelay = kTriggerOfFailure + 2;
    constexpr unsigned kShortest = 10;  // exponent of a power of two of picoseconds: 1 ns
    constexpr std::size_t kOrders = 17;
    if (failure.size() <= kDelay) return;
    failure[kTriggerOfFailure] = random_.choose(failure[kTriggerOfFailure] + 1);
    failure[kWindow] = 0;
    failure[kDelay] = random_.choose(std::size_t{1} << (kShortest + random_.choose(kOrders)));
  }

  void draw_image(std::vector<std::uint64_t>& image) {
    const std::size_t kind = random_.choose(3);
    for (std::uint64_t& value : image) value = kind < 2 ? kind * kLeast : random_.choose(3);
  }

  pmem::Tape::Streams best_;
  const std::function<bool(const pmem::Tape::Streams&)>& fails_;
  const ShrinkLimits& limits_;
  // The epochs of the first tape.
  std::size_t epochs_ = 1;
  std::map<std::string, std::size_t, std::less<>> choices_;  // number of each client's choices
  pmem::RandomChoices random_{1};
  std::uint64_t runs_ = 0;
  bool stopped_ = false;
};

}  // namespace

Shrunk shrink(pmem::Tape::Streams tape,
              const std::function<bool(const pmem::Tape::Streams&)>& fails,
              const ShrinkLimits& limits) {
  return Shrinker(std::move(tape), fails, limits).shrink();
}

}  // namespace perdura::explore
