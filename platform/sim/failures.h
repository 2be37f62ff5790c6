// Failures at every moment of a run.
//
// A scenario is a function that makes a platform, starts threads and runs it, and gives the
// platform to the Failure that it is handed. explore_failures() runs it once undisturbed to list
// its moments, then once for each with the failure there:
//
//   const Explored explored = explore_failures({}, [&](Failure& failure) {
//     SCOPED_TRACE(failure.text());
//     SimPlatform platform(profile, 3);
//     platform.track_durability({PersistenceDomain::dmp, false});
//     ... start servers and clients ...
//     failure.watch(platform, [&](pmem::Choices& choices) {
//       platform.fail_power(0, choices);
//       ... start the server and a reader again ...
//     });
//     platform.run();
//     ... if (failure.happened()) check ...
//   });
//
// The moments are: after each event of the engine, and between events each moment at which
// something becomes known or visible that changes what a power failure may leave, if the platform
// tracks durability.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "platform/pmem/model/choices.h"
#include "platform/sim/sim_platform.h"

namespace perdura::sim {

struct Moment {
  std::uint64_t events = 0;  // fired before it
  Time event_time{};         // of the last of them
  Time time{};               // not before event_time, and before the next event
  std::uint64_t writes = 0;  // a digest of what persistent memory has taken, to recognize the run
};

enum class Images : std::uint8_t { least, most, random, all };
constexpr std::string_view to_string(Images images) {
  constexpr std::string_view kNames[] = {"least", "most", "random", "all"};
  return kNames[static_cast<int>(images)];
}

struct Explored {
  std::uint64_t moments = 0;    // of the run
  std::uint64_t tried = 0;      // of these
  std::uint64_t runs = 0;       // with a failure: one for each image
  std::uint64_t cut_short = 0;  // moments with more images than `most_images`
  std::uint64_t known = 0;      // moments that were not tried since their only image had been
  // Moments at which nothing was left to choose: all images are this one.
  std::set<std::uint64_t> of_one_image;
};

struct ExploreOptions {
  Images images = Images::least;  // which of the images a failure leaves; `all` one after the other
  std::uint64_t seed = 1;         // of random images
  std::uint64_t first = 0;        // moment to try: goes on with an exploration, or replays one run
  std::uint64_t last = ~std::uint64_t{0};
  std::uint64_t stride = 1;       // tries every so many moments only
  std::uint64_t most_images = 0;  // of one moment, with `all`; 0 is no limit
  // An exploration of the same scenario with other images. What it found to be moments of one image
  // is not tried again: the runs would be the same.
  const Explored* before = nullptr;
  // Called before each moment, with how many were tried or known and how many will be. What it
  // throws ends the exploration; not a std::exception, since those are what a scenario fails with.
  std::function<void(std::uint64_t tried, std::uint64_t all)> progress{};
};

class Failure {
 public:
  using Inject = std::function<void(pmem::Choices&)>;

  // Calls `inject` at the moment of this run, between two events; the platform must not have run.
  void watch(SimPlatform& platform, Inject inject);

  // Moments count while this is on, as it is at first.
  void enable(bool on) { enabled_ = on; }

  // Whether there was a failure in this run.
  bool happened() const { return happened_; }
  // Says how to find this run again: "moment 3 of 120, after event 17 at 1.5 us, random images of
  // seed 1".
  const std::string& text() const { return text_; }

 private:
  friend class Explorer;
  void list(SimPlatform& platform);
  void look(SimPlatform& platform);
  static std::uint64_t digest(SimPlatform& platform);

  std::vector<Moment>* listed_ = nullptr;  // in the run that lists
  std::optional<Moment> moment_;
  pmem::Choices* choices_ = nullptr;
  Inject inject_;
  std::string text_;
  Time last_event_{};
  bool enabled_ = true;
  bool was_enabled_ = true;
  bool happened_ = false;
};

// Throws PlatformError, naming the moment, if a scenario throws or if a run is not the one that was
// listed up to its moment.
Explored explore_failures(const ExploreOptions& options,
                          const std::function<void(Failure&)>& scenario);

}  // namespace perdura::sim
