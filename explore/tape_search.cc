#include "explore/tape_search.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace perdura::explore {

namespace {

using Values = std::vector<std::uint64_t>;
using Streams = pmem::Tape::Streams;

// A soak of all systems has more than a hundred searches; each keeps at most a megabyte.
constexpr std::size_t kMostTapesKept = 256;
constexpr std::size_t kMostChoicesKept = 1U << 17;
constexpr std::size_t kMostVariations = 4;  // variations of one tape
constexpr std::size_t kMostReached = 4;     // states that are remembered of a tape
constexpr std::size_t kLongestRange = 16;   // that is drawn anew, left out or put in

auto at(Values& values, std::size_t place) {
  return values.begin() + static_cast<std::ptrdiff_t>(place);
}

std::uint64_t seed_of(pmem::Choices& choices) {
  constexpr std::size_t kHalf = std::size_t{1} << 32;
  const std::uint64_t high = choices.choose(kHalf);
  return high << 32 | choices.choose(kHalf);
}

}  // namespace

pmem::Tape TapeSearch::next() {
  const std::uint64_t seed = seed_of(random_);
  if (kept_.empty() || random_.choose(kOneFreshOf) == 0) {
    ++fresh_;
    return pmem::Tape(seed);
  }
  ++varied_;
  Kept& promising = most_promising();
  ++promising.varied;
  Streams tape = promising.tape;
  for (std::size_t count = 1 + random_.choose(kMostVariations); count > 0; --count) vary(tape);
  return pmem::Tape(std::move(tape), seed);
}

void TapeSearch::learn(const Streams& drawn, const std::unordered_set<std::uint64_t>& states) {
  Kept kept{drawn};
  for (const std::uint64_t state : states) {
    if (++states_[state] == 1 && kept.reached.size() < kMostReached) kept.reached.push_back(state);
  }
  if (!varies_ || kept.reached.empty()) return;
  for (const auto& [name, values] : drawn) kept.choices += values.size();
  choices_kept_ += kept.choices;
  kept_.push_back(std::move(kept));
  while (kept_.size() > 1 && (kept_.size() > kMostTapesKept || choices_kept_ > kMostChoicesKept)) {
    const auto out = kept_.begin() + static_cast<std::ptrdiff_t>(random_.choose(kept_.size() - 1));
    choices_kept_ -= out->choices;
    kept_.erase(out);
  }
}

// The one whose states few runs have reached, and that was not varied often yet: what is easy to
// reach need not be sought.
TapeSearch::Kept& TapeSearch::most_promising() {
  Kept* best = nullptr;
  std::uint64_t least = 0;
  for (Kept& kept : kept_) {
    std::uint64_t rarest = ~std::uint64_t{0};
    for (const std::uint64_t state : kept.reached) rarest = std::min(rarest, states_[state]);
    const std::uint64_t effort = rarest + kept.varied;
    if (best != nullptr && effort >= least) continue;
    best = &kept;
    least = effort;
  }
  return *best;
}

// Mostly what clients do, then when the servers fail.
Streams::iterator TapeSearch::any_stream(Streams& tape) {
  const auto weight = [](std::string_view name) -> std::size_t {
    if (name.starts_with("client-")) return 6;
    return name.starts_with("failure-") ? 3 : 1;
  };
  std::size_t sum = 0;
  for (const auto& [name, values] : tape) sum += weight(name);
  std::size_t rest = random_.choose(sum);
  auto stream = tape.begin();
  for (; rest >= weight(stream->first); ++stream) rest -= weight(stream->first);
  return stream;
}

void TapeSearch::vary(Streams& tape) {
  const auto stream = any_stream(tape);
  switch (random_.choose(3)) {
    case 0:
      take_from(any_kept(), stream->first, stream->second);
      break;
    default:
      vary_values(stream->second);
      break;
  }
}

// Takes the whole stream of another tape, or the part that follows a place in it.
void TapeSearch::take_from(const Streams& other, const std::string& name, Values& values) {
  const auto found = other.find(name);
  if (found == other.end()) return;
  const std::size_t shorter = std::min(values.size(), found->second.size());
  const std::size_t from = random_.choose(2) == 0 ? 0 : random_.choose(shorter + 1);
  values.resize(from);
  values.insert(values.end(), found->second.begin() + static_cast<std::ptrdiff_t>(from),
                found->second.end());
}

void TapeSearch::vary_values(Values& values) {
  if (values.empty()) return;  // what a run draws from it is drawn anew
  const std::size_t place = place_in(values);
  const std::size_t length = 1 + random_.choose(std::min(kLongestRange, values.size() - place));
  switch (random_.choose(6)) {
    case 0:
    case 1:
      values[place] = pmem::Tape::kAnew;
      break;
    case 2: {  // a little more or less, of any order of magnitude, as times have
      if (values[place] == pmem::Tape::kAnew) break;
      const std::uint64_t by = std::uint64_t{1} << random_.choose(24);
      const bool less = random_.choose(2) == 0;
      values[place] = less ? values[place] - std::min(values[place], by) : values[place] + by;
      break;
    }
    case 3:
      std::fill(at(values, place), at(values, place + length), pmem::Tape::kAnew);
      break;
    case 4:
      values.insert(at(values, place), length, pmem::Tape::kAnew);
      break;
    default:
      values.erase(at(values, place), at(values, place + length));
      break;
  }
}

}  // namespace perdura::explore
