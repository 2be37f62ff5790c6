// Creates a fresh platform for each point, so that points cannot influence each other.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "harness/config/experiment.h"
#include "harness/config/locations.h"
#include "harness/config/site.h"
#include "harness/run/point.h"
#include "harness/run/ranks.h"
#include "platform/platform.h"

namespace perdura::harness {

class PlatformFactory {
 public:
  virtual ~PlatformFactory() = default;

  virtual std::string_view name() const = 0;
  virtual bool modelled() const = 0;
  // As in results and in the manifest.
  virtual std::string profile_name() const = 0;
  virtual std::string profile_text() const = 0;

  // On sim what the profile says; of real machines a point alone can say it.
  virtual Testbed testbed() const { return {}; }

  // True if a point needs all ranks together, each being one node; false if every rank can run
  // points of its own.
  virtual bool collective() const = 0;
  // Where the files of persistent memory are; empty if they are none.
  virtual std::filesystem::path pm_directory() const = 0;
  // Throws UsageError or PlatformError if this machine lacks what such nodes need: cores, persistent
  // memory, a device. A plan needs none of it, so that a login node can make one.
  virtual void check_machine(const Roles&) const {}
  // The number of nodes of a point that does not specify it; 0: as many as the point needs.
  virtual NodeId nodes() const = 0;
  // Throws UsageError, with what to change, if a point with such nodes cannot be run.
  virtual void check_nodes(const Roles& roles) const = 0;

  // For a point, with empty memory. Collective platforms are created by all ranks, in the same
  // order. What a point says of DDIO is so on sim; real platforms are as they are.
  virtual std::shared_ptr<Platform> create(const Point& point) = 0;
};

// Throws UsageError if there is no such platform or profile. Sites matter to platforms of real
// threads only.
std::unique_ptr<PlatformFactory> create_platform_factory(const Experiment& experiment,
                                                         const Locations& locations, Ranks& ranks,
                                                         const Site& site = {});

}  // namespace perdura::harness
