// Runs sets of probes on a platform and writes a folder: probes.csv, manifest.json, figures and
// profile.toml (docs/probe.md).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/probe/probe.h"
#include "harness/config/locations.h"
#include "harness/results/machine.h"
#include "harness/run/ranks.h"
#include "harness/run/sweep.h"

namespace perdura::bench {

struct ProbeRequest {
  std::string platform{};
  // The testbed's profile on sim; elsewhere the base of the characterization.
  std::string profile{};
  harness::VerbsSettings verbs{};  // for verbs; shm uses its directory of persistent memory, too
  std::string set = "all";         // memory, rdma, translations, all
  bool quick = false;
  bool quiet = false;           // no progress
  std::filesystem::path out{};  // empty: out/probe-<platform>-<n>
  std::string command_line{};   // for the manifest
  std::vector<harness::ResponderProperty> responder{};
};

// Must be called by every rank. Throws UsageError before anything has run, and PlatformError if a
// probe cannot be finished. Returns `failed` if it was interrupted; what was measured until then is
// written.
harness::ExitCode run_probes(const ProbeRequest& request, const harness::Locations& locations,
                             harness::Ranks& ranks);

}  // namespace perdura::bench
