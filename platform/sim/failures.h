// Injects a failure at every crash point of a run.
//
// A scenario is a function that makes a platform, starts threads, passes the platform to
// Failure::watch(), and runs it. explore_failures() calls it once without a failure to list the
// crash points of the run, then once for each crash point (and image) with the failure there:
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
// There is a crash point after each event of the engine. If the platform tracks durability, there
// is also one, between events, wherever something becomes known or visible that changes which
// images a power failure may leave.
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

struct CrashPoint {
  std::uint64_t events = 0;  // number of events fired before the crash point
  Time event_time{};         // the time of the last of these events
  Time time{};               // a time from event_time to the time of the next event
  // A digest of the write counts so far, to detect that a run is not the listed one.
  std::uint64_t writes = 0;
  bool impossible = false;  // the failure cannot happen then
};

enum class Images : std::uint8_t { least, most, random, all };
constexpr std::string_view to_string(Images images) {
  constexpr std::string_view kNames[] = {"least", "most", "random", "all"};
  return kNames[static_cast<int>(images)];
}

struct Explored {
  std::uint64_t crash_points = 0;  // crash points of the run
  std::uint64_t tried = 0;         // crash points that were tried
  std::uint64_t runs = 0;          // runs with a failure: one for each image
  std::uint64_t cut_short = 0;     // crash points with more images than `most_images`
  std::uint64_t known = 0;         // crash points skipped because their only image was tried before
  std::uint64_t impossible = 0;    // crash points skipped because the failure cannot happen then
  // Crash points at which only one image is possible.
  std::set<std::uint64_t> of_one_image;
};

struct ExploreOptions {
  // The images that are tried at each crash point; `all`: every possible one.
  Images images = Images::least;
  std::uint64_t seed = 1;  // seed of random images
  // First crash point to try, to continue an exploration or to replay a single one (`first` =
  // `last`).
  std::uint64_t first = 0;
  std::uint64_t last = ~std::uint64_t{0};
  std::uint64_t stride = 1;       // only every stride-th crash point is tried
  std::uint64_t most_images = 0;  // limit of images per crash point with `all`; 0 is no limit
  // An earlier exploration of the same scenario with other `images`. Crash points at which it found
  // only one possible image are skipped, since their runs would be identical.
  const Explored* before = nullptr;
  // Called before each crash point with the number of crash points done (tried or skipped) and the
  // number to be done in total. An exception that it throws ends the exploration; it must not be a
  // std::exception, since those are taken as failures of the scenario.
  std::function<void(std::uint64_t tried, std::uint64_t all)> progress{};
};

class Failure {
 public:
  using Inject = std::function<void(pmem::Choices&)>;

  // Arranges that `inject` is called at this run's crash point, between two events. Must be called
  // before the platform runs. `can_happen` returns true if the failure could do anything now; crash
  // points at which it could not are not tried.
  void watch(SimPlatform& platform, Inject inject, std::function<bool()> can_happen = {});

  // Switches the counting of crash points on or off, for example during setup; it is on initially.
  void enable(bool on) { enabled_ = on; }

  // True if the failure was injected in this run.
  bool happened() const { return happened_; }
  // Describes this run so that it can be replayed: "crash point 3 of 120, after event 17 at 1.5 us,
  // random images of seed 1".
  const std::string& text() const { return text_; }
  // The number of this run's crash point; 0 in the run that lists them.
  std::uint64_t number() const { return number_; }

 private:
  friend std::vector<CrashPoint> list_crash_points(const std::function<void(Failure&)>& scenario);
  friend void fail_at(const std::vector<CrashPoint>& crash_points, std::size_t number,
                      pmem::Choices& choices, std::string_view image,
                      const std::function<void(Failure&)>& scenario);
  void list(SimPlatform& platform);
  void look(SimPlatform& platform);
  static std::uint64_t digest(SimPlatform& platform);

  std::vector<CrashPoint>* listed_ = nullptr;  // set in the run that lists the crash points
  std::optional<CrashPoint> crash_point_;
  pmem::Choices* choices_ = nullptr;
  Inject inject_;
  std::function<bool()> can_happen_;
  std::string text_;
  std::uint64_t number_ = 0;
  Time last_event_{};
  bool enabled_ = true;
  bool was_enabled_ = true;
  bool happened_ = false;
};

// The crash points of a scenario's run without a failure.
std::vector<CrashPoint> list_crash_points(const std::function<void(Failure&)>& scenario);
// Runs a scenario with a failure at one of its crash points. `image` names the image that is tried
// there, for Failure::text(). Throws as explore_failures() does.
void fail_at(const std::vector<CrashPoint>& crash_points, std::size_t number,
             pmem::Choices& choices, std::string_view image,
             const std::function<void(Failure&)>& scenario);

// Explores a scenario. Throws PlatformError, which names the crash point, if the scenario throws,
// or if a run differs from the listed run before its crash point (the scenario is not
// deterministic).
Explored explore_failures(const ExploreOptions& options,
                          const std::function<void(Failure&)>& scenario);

}  // namespace perdura::sim
