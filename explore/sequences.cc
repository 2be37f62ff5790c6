#include "explore/sequences.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "platform/base/error.h"
#include "platform/host/os_thread.h"

namespace perdura::explore {

namespace {

class SequenceExploration {
 public:
  SequenceExploration(const services::ServedSystem& system, const sim::Profile& profile,
                      const SequenceOptions& options)
      : system_(system), profile_(profile), options_(options) {
    const std::uint64_t all = system.service->sequences(options.kind);
    if (all == 0) {
      throw UsageError(fmt::format("service {} has no sequences of {} operations{}",
                                   system.service->name(), options.kind.length,
                                   options.kind.at_once ? " at once" : ""));
    }
    check_can_fail(system.info.name, options.fails, options.recoveries, *sequence(0).make());
    end_ = options.last < all ? options.last + 1 : all;
    if (options.first >= end_) {
      throw UsageError(
          fmt::format("sequence {} is beyond the last one, {}", options.first, all - 1));
    }
  }

  SequenceResult explore() {
    const std::uint64_t some = (end_ - options_.first + options_.stride - 1) / options_.stride;
    share_out(options_.threads, some, [this](std::size_t place) {
      const std::uint64_t number = options_.first + place * options_.stride;
      if (number < first_loss_) try_one(number);
    });
    return result_;
  }

 private:
  services::CrashSequence sequence(std::uint64_t number) const {
    return system_.service->crash_sequence(system_.info.name, options_.setup, options_.kind,
                                           number);
  }

  LosingRun losing_run(std::uint64_t number, const WhatFails& failing,
                       const Findings& found) const {
    LosingRun run{.kind = options_.kind, .sequence = number, .failing = failing};
    for (const services::Condition condition : services::conditions_of(options_.expected)) {
      if (found.losses.holds(condition) || found.losses.loss(condition).undecided) continue;
      run.image = found.failing[condition];
      break;
    }
    return run;
  }

  void try_one(std::uint64_t number) {
    const services::CrashSequence one = sequence(number);
    const std::unique_ptr<services::CrashScenario> scenario = one.make();
    for (const WhatFails& failing : all_failures(options_.fails, *scenario)) {
      const std::string name = text_of(one.name, failing, scenario->servers());
      const Findings found = explore_history(
          {std::string(system_.info.name), name, one.make, failing}, profile_, options_.setup.model,
          {.most_recoveries = options_.recoveries,
           .seed = options_.setup.seed,
           .threads = 1,
           .progress = [&](double) { report(number); }});
      const std::lock_guard lock(mutex_);
      result_.crash_points += found.crash_points;
      result_.states += found.states;
      result_.coverage.add(found.coverage);
      const std::string why = found.losses.loss_of(options_.expected).why;
      if (!why.empty() && number < first_loss_) {
        first_loss_ = number;
        result_.loss = {number, name, why, losing_run(number, failing, found),
                        found.losses.strongest()};
      }
    }
    report(number);
    const std::lock_guard lock(mutex_);
    ++result_.sequences;
  }

  // Also while a sequence is explored, so that an interrupt need not wait for its end.
  void report(std::uint64_t number) {
    if (!options_.progress) return;
    const std::lock_guard lock(mutex_);
    options_.progress(static_cast<double>(number - options_.first) /
                      static_cast<double>(end_ - options_.first));
  }

  const services::ServedSystem& system_;
  const sim::Profile& profile_;
  const SequenceOptions& options_;
  std::uint64_t end_ = 0;
  std::atomic<std::uint64_t> first_loss_{~std::uint64_t{0}};
  std::mutex mutex_;
  SequenceResult result_;
};

}  // namespace

SequenceResult explore_sequences(const services::ServedSystem& system, const sim::Profile& profile,
                                 const SequenceOptions& options) {
  const sim::Profile devices =
      with_commits_if_needed(profile, system.info, options.setup.parameters);
  return SequenceExploration(system, devices, options).explore();
}

}  // namespace perdura::explore
