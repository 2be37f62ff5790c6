// What a completed operation of a key-value system really guarantees when the server's power fails,
// found by trying: a small history of two clients, with the power failing at every moment of it,
// least, most and random images, recovery, and a reader.
//
//   const CrashResult result = explore_crashes(find_kv_system("erda"), profile,
//                                              {.model = {PersistenceDomain::mhp, true}});
//   if (!result.durable.held) puts(result.durable.first_loss.c_str());
//
// Each guarantee includes those that follow:
//
//   durable   nothing acknowledged is lost, and what is found is found again
//   ordered   of each key at most the last change is lost, be it acknowledged or not: old or new;
//             what has survived one failure is durable (history::Promise, last_version)
//   atomic    of each key one of the states that it ever had is found, never a mix, an invented
//             value or an error; and from there on the store is linearizable and takes writes
//
// A guarantee that is found not to hold does not hold: the first loss is the proof. One that held
// in all runs held for this history, these moments and these images; see CrashResult for how many
// that were. The same options give the same result on every machine.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "platform/pmem/model/persistence.h"
#include "platform/sim/profile.h"
#include "systems/kv.h"

namespace perdura::bench {

struct CrashOptions {
  pmem::PersistenceModel model;
  // The system's own parameters, besides those that make its store small.
  std::map<std::string, std::uint64_t, std::less<>> parameters{};
  // Puts persist by the method that the chooser finds for the model, not as in the paper.
  bool correct = false;
  std::uint64_t seed = 1;           // of what the clients do, and of random images
  std::uint32_t random_images = 2;  // of each moment, besides the least and the most
  std::uint64_t first = 0;          // moment to try, to go on with an exploration or replay a loss
  std::uint64_t last = ~std::uint64_t{0};
  std::uint64_t stride = 1;  // tries every so many moments only
};

struct Guarantee {
  bool held = true;
  // Of the first run in which it did not: what was done, where the power failed, what was found. A
  // text of several lines.
  std::string first_loss;
};

struct CrashResult {
  std::uint64_t moments = 0;    // of the history
  std::uint64_t runs = 0;       // with a failure
  std::uint64_t images = 0;     // different ones that were recovered, as far as moments differ
  std::uint64_t cleanings = 0;  // of a log, in the run without a failure
  Guarantee durable;
  Guarantee ordered;
  Guarantee atomic;

  // "durable", "ordered", "atomic" or "none".
  std::string_view strongest() const;
};

// Throws UsageError if the system does not take the parameters, and PlatformError if it fails
// without a power failure.
CrashResult explore_crashes(const systems::KvSystem& system, const sim::Profile& profile,
                            const CrashOptions& options);

}  // namespace perdura::bench
