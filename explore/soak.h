// Tries generated runs of systems (generated_run.h), steered toward states of the systems that no
// run has reached yet (tape_search.h), and reports each run that kept less than the table of
// guarantees (explored.h) says of its system.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "explore/explanation/diagram.h"
#include "explore/explored.h"
#include "explore/generated_run.h"
#include "explore/tape_search.h"
#include "platform/pmem/model/tape.h"
#include "platform/sim/kernel/profile.h"
#include "services/guarantee.h"
#include "services/service.h"

namespace perdura::explore {

// A system, how it is run, and on what kind of server.
struct SoakCase {
  services::ServedSystem system;
  ExploredSetting setting;
  pmem::PersistenceModel model;
  services::GuaranteeLevel expected{};
  bool late_placements = false;  // CrashSetup::late_placements

  services::CrashSetup setup() const {
    return {.model = model,
            .parameters = setting.parameters,
            .correct = setting.correct,
            .late_placements = late_placements};
  }
  std::string name() const;  // "erda, persist_before_update on dmp ddio"
};

// Returns all settings of the systems on all models on which they can run. Each case expects the
// level that the table says. For a system that the table does not have yet, it expects what the
// system promises, which is everything if the method is chosen for the server.
std::vector<SoakCase> soak_cases(const std::vector<services::ServedSystem>& systems,
                                 const sim::Profile& profile);
// Returns the settings and models that cannot run, one line for each setting and reason, such as
// "erda on dmp ddio iwarp, ...: needs ...".
std::vector<std::string> refused_cases(const std::vector<services::ServedSystem>& systems,
                                       const sim::Profile& profile);

// The outcome of one run.
struct SoakRun {
  services::GuaranteeLevel kept{};
  std::string loss;  // what was lost although the expected level rules it out; else empty
  std::string events;
  std::uint32_t failures = 0;
  std::map<std::string, std::uint64_t> happened;
  std::unordered_set<std::uint64_t> states;
  bool undecided = false;        // the judge gave up: `kept` is only what was expected
  std::uint64_t recoveries = 0;  // from other images of its last power failure
  // If one of those images keeps less than expected: the choices of a run that leaves it.
  std::optional<pmem::Tape::Streams> failing_image{};
};
// The key of SoakRun::happened for judgments in which the judge gave up.
inline constexpr std::string_view kUndecided = "histories that could not be decided";
// If the run has kept what is expected, also recovers from other images of its last power failure,
// at most `images` times. Throws UsageError if the system does not take the setting.
SoakRun run_once(const SoakCase& one, const sim::Profile& profile, pmem::Tape& tape,
                 std::uint64_t images = 0);

// A run and, if it kept less than expected, the choices by which it can be repeated.
struct TriedRun {
  SoakRun run;
  std::optional<pmem::Tape::Streams> failing{};
};
// Calls run_once(). If one of the other images kept less than expected, runs once more with that
// image. If this second run does not show the loss, counts that in SoakRun::happened.
TriedRun try_once(const SoakCase& one, const sim::Profile& profile, pmem::Tape& tape,
                  std::uint64_t images);

// Repeats a run and explains it.
Diagram explain(const SoakCase& one, const sim::Profile& profile, pmem::Tape& tape);

// A run that kept less than expected, made as simple as possible.
struct SoakFinding {
  SoakCase where;
  std::uint64_t seed = 0;      // seed of the search
  std::uint64_t schedule = 0;  // number of the run among those of the seed, from 1
  std::string tape;
  SoakRun run;
  bool stopped = false;  // shrinking ended before it was as simple as possible

  // Returns at most kMostLines lines.
  std::string text() const;
  static constexpr std::size_t kMostLines = 200;
};

// The finding of a run that kept `kept`, less than expected, made as simple as possible. `tape`
// holds all choices of that run. `stop`: see ShrinkLimits.
SoakFinding simplest_finding(const SoakCase& one, const sim::Profile& profile,
                             const pmem::Tape::Streams& tape, services::GuaranteeLevel kept,
                             const std::function<bool()>& stop);

struct SoakCounts {
  std::uint64_t schedules = 0;  // runs, without those of shrinking
  std::uint64_t fresh = 0;      // those drawn anew; the others are variations
  std::uint64_t failures = 0;
  std::uint64_t crash_states = 0;  // recoveries from images of power failures
  std::uint64_t states = 0;        // different states of the system (services::SystemState)
  std::map<std::string, std::uint64_t> happened;  // sums of SoakRun::happened

  void add(const SoakCounts& other);
};

// The search for a run of one case that keeps less than expected. The same seed gives the same
// runs.
class CaseSoak {
 public:
  // Images of a run's last power failure that are tried besides its own (run_once()).
  static constexpr std::uint64_t kUsualImages = 8;

  // `profile` must outlive this. `varies`: see TapeSearch.
  CaseSoak(SoakCase one, const sim::Profile& profile, std::uint64_t seed, bool varies = true,
           std::uint64_t images = kUsualImages);

  // Makes the next run; if it keeps less than expected, returns the finding, shrunk until `stop`
  // says true. Throws UsageError if the system does not take the setting.
  std::optional<SoakFinding> next(const std::function<bool()>& stop = {});

  const SoakCase& where() const { return case_; }
  const SoakCounts& counts() const { return counts_; }

 private:
  SoakCase case_;
  const sim::Profile& profile_;
  std::uint64_t seed_;
  std::uint64_t images_;
  TapeSearch search_;
  SoakCounts counts_;
};

}  // namespace perdura::explore
