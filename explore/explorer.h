// The loop by which failures of a history are explored: for each of its crash points, for each
// image that recovery can tell apart, judges what recovery finds.
//
// Where the power of all servers fails, the history is run once for each crash point, up to the
// failure. Then the servers recover, and the inspector reads, in a small simulation of their own
// (recovery.h), from memory whose undecided words are decided when they are read
// (platform/pmem/model/lazy_images.h). So one recovery covers all images that differ only in words
// that recovery and inspection do not read before they change them; of those that are left, the
// first keeps least, the second most, and the others are random, until all images of the failure
// are covered or the limit is reached.
//
// Where something else fails, the others go on, so the history is run to its end for each image:
// the one that keeps least, the one that keeps most, and random ones. Only a failure of power has
// more than one.
//
// What else makes it fast:
//
//   - Inspections of the same failure that have found the same are judged once.
//   - A crash point with the same persistent memory as the one before it, only clients know more,
//     repeats one recovery for each thing that could be found. Images are covered there again.
//   - Crash points are shared out over threads, in portions that do not depend on their number.
//
// Other ways were worse: keeping the process at the failure (fork) costs more than a whole run of
// these histories, and comparing digests of images saves judging alone.
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

struct ExploreOptions {
  // Limit of images, or of recoveries that each stand for many, at a crash point; 0: until all are
  // covered, if the power of all servers fails.
  std::uint64_t most_recoveries = 0;
  std::uint64_t seed = 1;   // seed of random images
  std::uint64_t first = 0;  // crash point
  std::uint64_t last = ~std::uint64_t{0};
  std::uint64_t stride = 1;
  unsigned threads = 0;  // 0: one for each of the host's
  // Called by all threads with the fraction that is done, from 0 to 1. An exception that it throws
  // ends the exploration.
  std::function<void(double share)> progress{};
};

// Numbers of images count an image at each crash point that has it; pmem::kCountless stands for
// all greater numbers.
struct ImageCoverage {
  std::uint64_t exhausted = 0;  // crash points whose images were all covered
  std::uint64_t sampled = 0;    // the others
  std::uint64_t images = 0;     // that the failures may leave
  std::uint64_t covered = 0;    // those of them that the recoveries stand for
  std::uint64_t recoveries = 0;

  void add(const ImageCoverage& other);
};

// The crash point and the image of a loss, by which it can be repeated.
struct FailingImage {
  Picoseconds after{};               // as failing() takes it
  std::vector<std::uint64_t> image;  // the alternatives that the failure of power takes
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

// The result depends on neither threads nor time. Throws PlatformError if the history goes wrong
// without a failure, or if a recovery depends on more than persistent memory.
Findings explore_history(const History& history, const sim::Profile& profile,
                         const pmem::PersistenceModel& model, const ExploreOptions& options);

}  // namespace perdura::explore
