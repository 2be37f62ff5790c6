// What a completed operation of a key-value system really guarantees when the server's power fails,
// found by trying: small histories of two clients, with the power failing at every moment of them,
// least, most and random images, recovery, and a reader.
//
//   const CrashResult result = explore_crashes(find_kv_system("erda"), profile,
//                                              {.model = {PersistenceDomain::mhp, true}});
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

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "platform/pmem/model/persistence.h"
#include "platform/sim/kernel/profile.h"
#include "systems/guarantee.h"
#include "systems/kv.h"

namespace perdura::bench {

// Who does what. Two equally fast writers never show what a reader sees of a write that is under
// way for long.
enum class Schedule : std::uint8_t {
  equal_writers,  // both put, update, delete and get
  slow_writer,    // one writes, and each of its operations is late; the other one only gets
};
inline constexpr std::array kSchedules{Schedule::equal_writers, Schedule::slow_writer};
constexpr std::string_view to_string(Schedule schedule) {
  return schedule == Schedule::equal_writers ? "equal-writers" : "slow-writer";
}

struct CrashOptions {
  pmem::PersistenceModel model;
  // The system's own parameters, besides those that make its store small.
  GivenParameters parameters{};
  // Puts persist by the method that the chooser finds for the model, not as in the paper.
  bool correct = false;
  std::uint64_t seed = 1;           // of what the clients do, and of random images
  std::uint32_t random_images = 2;  // of each moment, besides the least and the most
  std::uint64_t first = 0;          // moment to try, to go on with an exploration or replay a loss
  std::uint64_t last = ~std::uint64_t{0};
  std::uint64_t stride = 1;            // tries every so many moments only
  std::optional<Schedule> schedule{};  // only this one; moments are counted in each from 0
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
  std::uint64_t moments = 0;    // of all histories
  std::uint64_t runs = 0;       // with a failure; those that would be the same count
  std::uint64_t images = 0;     // different ones that were recovered, as far as moments differ
  std::uint64_t cleanings = 0;  // of a log, in the runs without a failure
  // Gets, in the runs without a failure, that returned a version before its put was acknowledged.
  std::uint64_t early_reads = 0;
  Guarantee durable;
  Guarantee acknowledged;
  Guarantee observed;
  Guarantee ordered;
  Guarantee atomic;

  // The strongest level of which all was kept; never "visible".
  systems::GuaranteeLevel strongest() const;
};

// Throws UsageError if the system does not take the parameters, and PlatformError if it fails
// without a power failure.
CrashResult explore_crashes(const systems::KvSystem& system, const sim::Profile& profile,
                            const CrashOptions& options);

}  // namespace perdura::bench
