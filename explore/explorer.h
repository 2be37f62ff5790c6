// The loop that explores the failures of a history. For each crash point of the history, and for
// each image that recovery can tell apart there, it judges what recovery finds.
//
// Where the power of all servers fails, the history is run once for each crash point, up to the
// failure. Then the servers recover, and the inspector reads, in a small simulation of their own
// (recovery.h), from memory whose undecided words are decided when they are read
// (platform/pmem/model/lazy_images.h). So one recovery covers all images that differ only in words
// that recovery and inspection do not read before they change them. Further recoveries take images
// that are not covered yet: the first recovery keeps least, the second most, and the others are
// random, until all images of the failure are covered or the limit is reached.
//
// Where anything else fails, the rest of the system goes on, so the history is run to its end for
// each image: the one that keeps least, the one that keeps most, and random ones. Only a failure of
// power has more than one image.
//
// Three more things make the loop fast:
//
//   - Inspections of the same failure that have found the same are judged once.
//   - Some crash points have the same persistent memory as the one before, and differ only in that
//     clients know more. There only one recovery is repeated for each different finding. The images
//     of such a crash point are counted as covered again.
//   - Crash points are shared out over threads, in portions that do not depend on their number.
//
// Two other ways were worse. Keeping the process at the failure with fork() costs more than a whole
// run of these histories, and comparing digests of images saves only the judging.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "explore/plan.h"
#include "platform/pmem/model/persistence.h"
#include "services/crash.h"

namespace perdura::explore {

// A fixed history, and what fails in it.
struct History {
  std::string system;  // for texts
  std::string name;    // the same
  services::CrashHistory make;
  WhatFails failing{};
};

// The crash point and the image of a loss, by which it can be repeated.
struct FailingImage {
  Picoseconds after{};  // as failing() takes it
  // The alternatives that the failure of power takes; the first one where they have ended.
  std::vector<std::uint64_t> image;
  std::string name;  // for texts: "recovery 3", "least image"
};

struct ExploreOptions {
  // The limit at each crash point. If the power of all servers fails, it limits recoveries, each of
  // which covers many images; otherwise it limits images. 0 means no limit, and is allowed only if
  // the power of all servers fails.
  std::uint64_t most_recoveries = 0;
  std::uint64_t seed = 1;   // seed of random images
  std::uint64_t first = 0;  // first crash point to try
  std::uint64_t last = ~std::uint64_t{0};
  std::uint64_t stride = 1;
  // Repeats a loss: only this image is tried, at the crash point that stands for its time.
  std::optional<FailingImage> only{};
  services::PerCondition<bool> judged{true};  // the other conditions are taken to hold
  unsigned threads = 0;                       // 0: one for each core of the host
  // Called by all threads with the fraction that is done, from 0 to 1. An exception that it throws
  // ends the exploration.
  std::function<void(double share)> progress{};
};

// An image that several crash points have is counted once for each of them. pmem::kCountless stands
// for all numbers that are too great to count.
struct ImageCoverage {
  std::uint64_t exhausted = 0;  // crash points whose images were all covered
  std::uint64_t sampled = 0;    // the others
  std::uint64_t images = 0;     // those that the failures may leave
  std::uint64_t covered = 0;    // those of them that the recoveries stand for
  std::uint64_t recoveries = 0;

  void add(const ImageCoverage& other);
};

struct Findings {
  std::uint64_t crash_points = 0;  // number of crash points in the history
  std::uint64_t states = 0;        // different findings of recovery, summed over the crash points
  ImageCoverage coverage;
  // Counts of the events in the run without a failure (services::CrashScenario::events()), except
  // for those of recovery (services::Event::in_recovery), which are summed over all recoveries.
  std::map<std::string, std::uint64_t, std::less<>> events;
  // For each condition the first loss: where the failure was, and why the condition is broken.
  services::Verdict losses;
  services::PerCondition<FailingImage> failing;
};

// Explores one history. The result depends neither on the number of threads nor on the host's
// speed. Throws PlatformError if the history goes wrong without a failure, or if a recovery depends
// on anything besides persistent memory.
Findings explore_history(const History& history, const sim::Profile& profile,
                         const pmem::PersistenceModel& model, const ExploreOptions& options);

}  // namespace perdura::explore
