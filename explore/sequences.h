// Explores every sequence of a few operations that a service has (services::Service::sequences), in
// the manner of ACE (Mohan et al., "Finding Crash-Consistency Bugs with Bounded Black-Box Crash
// Testing", OSDI 2018): the power fails at every crash point of the last operation, or of all of
// them if they are done at once, and servers recover from several images of each crash point, or
// from all (explorer.h). Something else may fail instead.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "explore/all_failures.h"
#include "explore/crash.h"
#include "explore/explorer.h"
#include "platform/sim/kernel/profile.h"
#include "services/guarantee.h"
#include "services/service.h"

namespace perdura::explore {

struct SequenceOptions {
  services::CrashSetup setup{};
  services::SequenceKind kind{};
  Failures fails{};
  // At each crash point; see ExploreOptions. 0, only if the power of all servers fails: until all
  // images are covered.
  std::uint64_t recoveries = 4;
  std::uint64_t first = 0;  // sequence to try: to continue, or to replay one
  std::uint64_t last = ~std::uint64_t{0};
  std::uint64_t stride = 1;
  unsigned threads = 0;  // 0: one for each of the host's
  // The exploration ends with the first sequence that keeps less than this.
  services::GuaranteeLevel expected = services::GuaranteeLevel::durable;
  // Called with the share that is done, from 0 to 1, by one thread at a time. An exception that it
  // throws ends the exploration.
  std::function<void(double share)> progress{};
};

struct SequenceResult {
  std::uint64_t sequences = 0;  // number of sequences tried
  std::uint64_t crash_points = 0;
  std::uint64_t states = 0;  // different findings of recovery, summed over the crash points
  ImageCoverage coverage;
  // The first sequence, by its number, that kept less than expected.
  struct Loss {
    std::uint64_t number = 0;
    std::string name;
    std::string why;
    LosingRun run{};
    services::GuaranteeLevel kept{};  // the strongest level that none of its runs has broken
  };
  std::optional<Loss> loss{};
};

// Throws UsageError if the service has no such sequences, PlatformError if one of them goes wrong
// without a failure.
SequenceResult explore_sequences(const services::ServedSystem& system, const sim::Profile& profile,
                                 const SequenceOptions& options);

}  // namespace perdura::explore
