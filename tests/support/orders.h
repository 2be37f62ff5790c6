// All orders of the steps of two activities of a simulation, such as a READ and a change of what it
// reads.
//
// A simulation computes when everything happens, so it shows one order of the steps of two
// activities that begin at given times. The distances between the steps of one activity are fixed;
// which step of the other comes in between depends on how much later that one begins. So a test
// first runs each activity alone and notes when anything happens, and then runs both once for each
// difference of their beginnings that gives another order (differences()). After that a strategy
// makes messages, devices and threads late, in each place (SimPlatform::choose_schedule).
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "platform/pmem/model/choices.h"
#include "platform/sim/sim_platform.h"
#include "platform/strategies/bounded.h"

namespace perdura::test {

// By how much later the second activity has to begin than the first, or earlier if negative, for
// each order of their instants: those at which two instants coincide, and `between` of them between
// each two of these, since not all that a thread or a device does has an instant of its own. The
// least and the greatest let one activity end before the other begins.
inline std::vector<Picoseconds> differences(std::span<const Picoseconds> first,
                                            std::span<const Picoseconds> second, int between = 1) {
  std::vector<Picoseconds> coincide;
  for (const Picoseconds one : first) {
    for (const Picoseconds other : second) coincide.push_back(one - other);
  }
  std::sort(coincide.begin(), coincide.end());
  std::vector<Picoseconds> all;
  if (coincide.empty()) return all;
  all.push_back(coincide.front() - Microseconds(1));
  for (std::size_t i = 0; i < coincide.size(); ++i) {
    all.push_back(coincide[i]);
    if (i + 1 == coincide.size()) break;
    const Picoseconds gap = coincide[i + 1] - coincide[i];
    for (int part = 1; part <= between; ++part) {
      all.push_back(coincide[i] + gap * part / (between + 1));
    }
  }
  all.push_back(coincide.back() + Microseconds(1));
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// Memory that somebody else has got, in whole KiB: every other line is filled at once, a line of
// each KiB first, so that an access that should have ended meets some of them soon. A READ shows
// these lines. A WRITE that is late shows in the other lines: of a store that is made before its
// bytes arrive, the simulation keeps the store (platform/pmem/sim/timeline.h).
class TakenMemory {
 public:
  TakenMemory(pmem::Region& region, Bytes at, Bytes length, char letter)
      : region_(region), at_(at), bytes_(length) {
    const std::vector<std::byte> line(kCacheLine, static_cast<std::byte>(letter));
    for (Bytes first = 0; first < KiB; first += 2 * kCacheLine) {
      for (Bytes from = first; from < length; from += KiB) region.write(at + from, line);
    }
    region.read(at, bytes_);
  }
  Bytes at() const { return at_; }
  // True if nobody else has changed it.
  bool is_intact() const {
    std::vector<std::byte> now(bytes_.size());
    region_.read(at_, now);
    return now == bytes_;
  }

 private:
  pmem::Region& region_;
  Bytes at_;
  std::vector<std::byte> bytes_;
};

// Runs histories of two activities on a platform whose threads have not been started yet.
class TwoActivities {
 public:
  enum Which : std::uint8_t { kFirst, kSecond };
  struct Span {
    Time begin;
    Time end;
  };

  explicit TwoActivities(sim::SimPlatform& platform) : engine_(platform.engine()) {
    platform.choose_schedule(
        {.messages = &late_, .devices = &late_, .threads = {.yields = &late_}});
    platform.between_events([this] { note_instant(); });
  }
  TwoActivities(const TwoActivities&) = delete;
  TwoActivities& operator=(const TwoActivities&) = delete;

  // Calls `history` for each history, until a test has failed: each activity alone, both in all
  // orders (`between`: see differences()), and both with up to `deviations` late steps. A history
  // prepares what it needs, calls prepared(), and has both activities performed, by any threads.
  Task<> each(int between, std::uint32_t deviations, std::function<Task<>()> history) {
    std::array<std::vector<Picoseconds>, 2> instants;
    for (const Which which : {kFirst, kSecond}) {
      alone_ = which;
      is_alone_ = true;
      co_await history();
      instants.at(which) = instants_;
    }
    is_alone_ = false;
    for (const Picoseconds later : differences(instants[kFirst], instants[kSecond], between)) {
      if (testing::Test::HasFailure()) co_return;
      later_ = later;
      ++orders_;
      co_await history();
    }
    if (deviations == 0) co_return;
    // The second begins while the first is under way, the first while the second is, and after it.
    const Picoseconds of_second = instants[kSecond].back();
    for (const Picoseconds later : {instants[kFirst].back() / 2, -of_second / 2, -of_second}) {
      later_ = later;
      for (strategies::Bounded strategy(deviations); strategy.next();) {
        if (testing::Test::HasFailure()) co_return;
        strategy_ = &strategy;
        ++schedules_;
        co_await history();
      }
      strategy_ = nullptr;
    }
  }

  bool does(Which which) const { return !is_alone_ || alone_ == which; }
  // All is prepared; the activities begin at `start` at the earliest.
  void prepared(Time start) {
    start_ = start;
    late_.strategy = strategy_;
  }
  // Performs an activity at its time, if this history has it.
  Task<> perform(Which which, std::function<Task<>()> activity) {
    if (!does(which)) co_return;
    const Picoseconds later = is_alone_ ? Picoseconds{} : which == kFirst ? -later_ : later_;
    co_await sleep_until(start_ + std::max(Picoseconds{}, later));
    spans_.at(which).begin = Executor::current().now();
    if (is_alone_) {
      instants_.clear();
      is_recording_ = true;
      note_instant();
    }
    co_await activity();
    co_await yield();  // the time of all that is charged
    spans_.at(which).end = Executor::current().now();
    is_recording_ = false;
  }
  // Both have been performed, so nothing is late any more.
  void performed() { late_.strategy = nullptr; }

  const Span& span(Which which) const { return spans_.at(which); }
  // True if one ended before the other began.
  bool precedes(Which which, Which other) const {
    return !is_alone_ && spans_.at(which).end < spans_.at(other).begin;
  }

  std::uint64_t orders() const { return orders_; }
  std::uint64_t schedules() const { return schedules_; }  // those with late steps
  // The history under way, as a phrase.
  std::string text() const {
    if (is_alone_) return "alone";
    std::string text = fmt::format("the second {} ps after the first", later_.count());
    if (strategy_ != nullptr) text += fmt::format(", schedule {} with late steps", schedules_);
    return text;
  }

 private:
  // Passes on the choices of a part of a run; elsewhere nothing is late.
  class LateSteps final : public pmem::Choices {
   public:
    pmem::Choices* strategy = nullptr;
    std::size_t choose(std::size_t n) override {
      return strategy == nullptr ? 0 : strategy->choose(n);
    }
  };

  void note_instant() {
    if (!is_recording_) return;
    const Picoseconds now = engine_.now() - spans_.at(alone_).begin;
    if (instants_.empty() || instants_.back() != now) instants_.push_back(now);
  }

  sim::Engine& engine_;
  LateSteps late_;
  std::uint64_t orders_ = 0;
  std::uint64_t schedules_ = 0;
  // The history under way.
  bool is_alone_ = false;
  Which alone_ = kFirst;
  Picoseconds later_{};
  pmem::Choices* strategy_ = nullptr;
  Time start_{};
  std::array<Span, 2> spans_{};
  bool is_recording_ = false;
  std::vector<Picoseconds> instants_;
};

}  // namespace perdura::test
