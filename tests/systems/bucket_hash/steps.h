// The steps that an operation of an index takes in memory, and mistakes: what a wrong index would
// do instead of them. The index itself is always the one that is served; only its steps are
// changed.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "platform/base/units.h"

namespace perdura::test {

using Image = std::vector<std::byte>;

struct Step {
  enum class Kind : std::uint8_t { write, flush, fence };

  Kind kind = Kind::fence;
  Bytes offset = 0;
  Bytes length = 0;
  Image bytes{};   // that are written
  Image before{};  // what was there

  bool is_write() const { return kind == Kind::write; }
  bool is_flush() const { return kind == Kind::flush; }
  bool is_fence() const { return kind == Kind::fence; }
  std::uint64_t word() const { return word_in(bytes); }
  std::uint64_t word_before() const { return word_in(before); }

  static Step write_word(Bytes offset, std::uint64_t word) { return write_object(offset, word); }
  template <class T>
  static Step write_object(Bytes offset, const T& object) {
    const auto bytes = std::as_bytes(std::span(&object, 1));
    return {Kind::write, offset, sizeof object, {bytes.begin(), bytes.end()}, {}};
  }
  static Step flush(Bytes offset, Bytes length = kWord) {
    return {Kind::flush, offset, length, {}, {}};
  }
  static Step fence() { return {}; }

 private:
  static std::uint64_t word_in(const Image& bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), std::min<std::size_t>(bytes.size(), kWord));
    return word;
  }
};

using Steps = std::vector<Step>;

// What the steps belong to.
enum class Operation : std::uint8_t { put, erase, resize };

// Returns the steps of a wrong index. `memory` is what it holds before them.
using Mistake = std::function<Steps(Operation, Steps steps, const Image& memory)>;

inline Steps no_mistake(Operation, Steps steps, const Image&) { return steps; }

template <class... Parts>
Steps joined(const Parts&... parts) {
  Steps all;
  (all.insert(all.end(), parts.begin(), parts.end()), ...);
  return all;
}

// A fence belongs to the step before it.
template <class Predicate>
std::pair<Steps, Steps> divided(const Steps& steps, const Predicate& is_such) {
  std::pair<Steps, Steps> parts;
  bool such = false;
  for (const Step& step : steps) {
    if (!step.is_fence()) such = is_such(step);
    (such ? parts.first : parts.second).push_back(step);
  }
  return parts;
}
template <class Predicate>
Steps such_first(const Steps& steps, const Predicate& is_such) {
  const auto [such, others] = divided(steps, is_such);
  return joined(such, others);
}
template <class Predicate>
Steps without(const Steps& steps, const Predicate& is_such) {
  return divided(steps, is_such).second;
}
// Only the flushes: the fences stay.
template <class Predicate>
Steps without_flushes(Steps steps, const Predicate& is_such) {
  std::erase_if(steps, [&](const Step& step) { return step.is_flush() && is_such(step); });
  return steps;
}

// The end of what is stored at `first`, made durable, and told to readers by checks: behind the
// next fence, and the checks behind that.
template <class Predicate>
Steps::iterator end_of_change(Steps::iterator first, Steps::iterator last,
                              const Predicate& is_check) {
  first = std::find_if(first, last, [](const Step& step) { return step.is_fence(); });
  if (first != last) ++first;
  return std::find_if_not(first, last,
                          [&](const Step& step) { return step.is_write() && is_check(step); });
}

// Of each change of this kind, lets readers see it before it is durable.
template <class Predicate, class IsCheck>
Steps with_checks_before_flushes(Steps steps, const Predicate& changes, const IsCheck& is_check) {
  for (auto step = steps.begin(); step != steps.end(); ++step) {
    if (!step->is_write() || !changes(*step)) continue;
    const auto end = end_of_change(step, steps.end(), is_check);
    std::stable_partition(step + 1, end, [](const Step& later) { return later.is_write(); });
  }
  return steps;
}

}  // namespace perdura::test
