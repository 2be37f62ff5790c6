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
  // The name of the profile as results and the manifest have it.
  virtual std::string profile_name() const = 0;
  virtual std::string profile_text() const = 0;

  // The server's properties as the profile gives them, on sim; for real machines only the point can
  // give them.
  virtual Testbed testbed() const { return {}; }

  // True if a point needs all ranks together, each being one node; false if every rank can run
  // points of its own.
  virtual bool collective() const = 0;
  // Folder of the files of persistent memory; empty if there are none.
  virtual std::filesystem::path pm_directory() const = 0;
  // Throws UsageError or PlatformError if this machine lacks what the roles' nodes need: cores,
  // persistent memory, a device. A plan does not call it, so that a login node can make one.
  virtual void check_machine(const Roles&) const {}
  // Throws PlatformError, with the size that would be enough, if the nodes of a point cannot have so
  // much persistent memory on this machine. `who` names the point.
  virtual void check_room(Bytes, const std::string&) const {}
  // The number of nodes of a point that does not specify it; 0 means as many as the point needs.
  virtual NodeId nodes() const = 0;
  // Throws UsageError, with advice, if a point with these roles cannot be run.
  virtual void check_nodes(const Roles& roles) const = 0;

  // Creates the platform of a point, with empty memory. For collective platforms all ranks call it,
  // in the same order. The point's DDIO setting takes effect on sim; real platforms are as they
  // are.
  virtual std::shared_ptr<Platform> create(const Point& point) = 0;
};

// Throws UsageError if there is no such platform or profile. Only platforms of real threads use the
// site.
std::unique_ptr<PlatformFactory> create_platform_factory(const Experiment& experiment,
                                                         const Locations& locations, Ranks& ranks,
                                                         const Site& site = {});

}  // namespace perdura::harness
