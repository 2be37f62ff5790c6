// From an experiment's name to points that can be run: the first step of `perdura run` and `perdura
// plan`.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/config/experiment.h"
#include "harness/config/locations.h"
#include "harness/config/override.h"
#include "harness/config/site.h"
#include "harness/results/identity.h"
#include "harness/run/memory.h"
#include "harness/run/platform_factory.h"
#include "harness/run/point.h"
#include "harness/run/ranks.h"

namespace perdura::harness {

// The request as given on the command line.
struct ExperimentRequest {
  std::string experiment{};  // a name or a path
  std::vector<Override> overrides{};
  std::string site{};      // a name or a path; empty: no site
  bool plan_only = false;  // do not check that this machine has what the platform needs
};

struct PreparedSweep {
  Experiment experiment;  // with the site's values where it leaves them open
  Site site;
  const Driver* driver = nullptr;
  std::unique_ptr<PlatformFactory> platforms;
  std::vector<Point> points;
  std::vector<std::optional<Bytes>> memory;  // per point; nullopt if it cannot be estimated
  std::optional<AvailableMemory> available_memory;
  struct File : InputFile {
    std::string kind;  // as in PointFile, and so are name and settings
  };
  std::vector<File> files;  // the input files of the points, each once
};

// The inputs of all points: the build, and the texts of all files.
Identity identity_of(const PreparedSweep& sweep);

// Collective. The root prints remarks on stderr about points that run differently from what files
// say. Throws UsageError, on all ranks, if something does not exist or cannot be run, or if ranks
// have different files or builds; only the root's message is meant for the user.
PreparedSweep prepare_sweep(const ExperimentRequest& request, const Locations& locations,
                            std::span<const Driver* const> drivers, Ranks& ranks);

}  // namespace perdura::harness
