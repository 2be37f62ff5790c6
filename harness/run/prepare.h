// From the name of an experiment to the points that can be run: what `perdura run` and `perdura
// plan` begin with.
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

// What is asked for, as on the command line.
struct ExperimentRequest {
  std::string experiment{};  // a name or a path
  std::vector<Override> overrides{};
  std::string site{};      // likewise; empty: none
  bool plan_only = false;  // this machine need not have what the platform needs
};

struct PreparedSweep {
  Experiment experiment;  // what it leaves open is as the site says
  Site site;
  const Driver* driver = nullptr;
  std::unique_ptr<PlatformFactory> platforms;
  std::vector<Point> points;
  std::vector<std::optional<Bytes>> memory;  // that each needs, as far as it can be estimated
  std::optional<AvailableMemory> available_memory;
  struct File : InputFile {
    std::string kind;  // as of PointFile, like the name and the settings
  };
  std::vector<File> files;  // that the points were made from, each once
};

// What the points are made from: the build, and the texts of all files.
Identity identity_of(const PreparedSweep& sweep);

// Every rank calls it; the root says on stderr what is run in another way than files say. Throws
// UsageError, on all ranks, if any of it does not exist or cannot be run, or if ranks have
// different files or builds; only the root's message is of use then.
PreparedSweep prepare_sweep(const ExperimentRequest& request, const Locations& locations,
                            std::span<const Driver* const> drivers, Ranks& ranks);

}  // namespace perdura::harness
