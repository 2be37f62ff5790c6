// Tries many images of each power failure of a history without running the history again for each.
//
// At a crash point the history is run once, up to the failure. Then the servers recover, and the
// inspector reads, in a small simulation of their own (recovery.h), from memory whose undecided
// words are decided when they are read (platform/pmem/model/lazy_images.h). So one recovery covers
// all images that differ only in words that recovery and inspection do not read before they change
// them; of those that are left, the first keeps least, the second most, and the others are random,
// until all images of the failure are covered or the limit is reached.
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
//
// A client that is connecting when the power fails gives up; in runs that continue after the
// failure (crash_run.h) it connects to the recovered server.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "platform/pmem/model/persistence.h"
#include "platform/sim/failures.h"
#include "services/crash.h"

namespace perdura::explore {

struct ImageOptions {
  std::uint64_t most_recoveries = 0;  // limit for a crash point; 0: until all images are covered
  std::uint64_t seed = 1;
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

struct ImageFindings {
  std::uint64_t crash_points = 0;  // number of crash points in the history
  std::uint64_t states = 0;        // different findings of recovery, summed over the crash points
  ImageCoverage coverage;
  // For each condition the first loss: where the power failed, and why the condition is broken.
  services::Verdict losses;
};

// `name` of the history is for texts. `undisturbed` is called with the run without a failure. The
// result depends on neither threads nor time. Throws as sim::explore_failures() does, and
// PlatformError if a recovery depends on more than persistent memory.
ImageFindings explore_images(
    const services::CrashHistory& make, const sim::Profile& profile,
    const pmem::PersistenceModel& model, const std::string& name, const ImageOptions& options,
    const std::function<void(const services::CrashScenario&)>& undisturbed);

}  // namespace perdura::explore
