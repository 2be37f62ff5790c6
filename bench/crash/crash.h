// What a completed operation of a system really guarantees when its servers' power fails, found by
// trying: the small histories that its service brings (services/crash.h), with the power failing at
// every moment of them, least, most and random images, recovery, and an inspector.
//
//   const CrashResult result = explore_crashes(*find_system("erda"), profile,
//                                              {.setup = {.model = {PersistenceDomain::mhp,
//                                              true}}});
//   if (!result.durable.held) puts(result.durable.first_loss.c_str());
//
// What is judged (docs/guarantees.md):
//
//   durable       the history with the failure is linearizable: nothing that any completed
//   operation
//                 has told is lost (durable linearizability)
//   acknowledged  the same of writes alone: every write that was acknowledged survives
//   observed      the same of reads alone: what a completed get has returned survives, or what came
//                 after it
//   ordered       of each key at most the last change is lost, be it acknowledged or not: old or
//                 new; what has survived one failure is durable (history::Promise, last_version)
//   atomic        of each key one of the states that it ever had is found, never a mix, an invented
//                 value or an error; and from there on the store is linearizable and takes writes
//
// "durable" includes all the others, "ordered" includes "atomic"; "acknowledged" and "observed" are
// independent.
//
// A guarantee that is found not to hold does not hold: the first loss is the proof. One that held
// in all runs held for this history, these moments and these images; see CrashResult for how many
// that were. The same options give the same result on every machine.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "platform/sim/kernel/profile.h"
#include "services/guarantee.h"
#include "services/service.h"

namespace perdura::bench {

struct CrashOptions {
  services::CrashSetup setup;
  std::uint32_t random_images = 2;  // of each moment, besides the least and the most
  std::uint64_t first = 0;          // moment to try, to go on with an exploration or replay a loss
  std::uint64_t last = ~std::uint64_t{0};
  std::uint64_t stride = 1;  // tries every so many moments only
  // Only this schedule of the service; moments are counted in each from 0. Empty: all.
  std::string schedule{};
  // How many of the servers lose their power at once: any so many of them, one after the other.
  // 0: all.
  NodeId failing = 0;
  // Called before each run with the share of the exploration that is done, from 0 to 1. What it
  // throws ends the exploration (sim::ExploreOptions::progress).
  std::function<void(double share)> progress{};
};

struct Guarantee {
  bool held = true;
  // Of the first run in which it did not: what was done, where the power failed, what was found. A
  // text of several lines.
  std::string first_loss;
};

struct CrashResult {
  std::uint64_t moments = 0;  // of all histories
  std::uint64_t runs = 0;     // with a failure; those that would be the same count
  std::uint64_t images = 0;   // different ones that were recovered, as far as moments differ
  // In the runs without a failure (services::CrashScenario::events()).
  std::map<std::string, std::uint64_t, std::less<>> events;
  Guarantee durable;
  Guarantee acknowledged;
  Guarantee observed;
  Guarantee ordered;
  Guarantee atomic;

  // The strongest level of which all was kept; never "visible".
  services::GuaranteeLevel strongest() const;
};

// Throws UsageError if the system does not take the parameters or its service has no such schedule,
// and PlatformError if it fails without a power failure.
CrashResult explore_crashes(const services::ServedSystem& system, const sim::Profile& profile,
                            const CrashOptions& options);

}  // namespace perdura::bench
