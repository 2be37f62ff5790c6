// A point of a sweep, ready to be run: everything looked up and checked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/config/experiment.h"
#include "harness/config/locations.h"
#include "harness/config/roles.h"
#include "harness/results/manifest.h"
#include "harness/results/measurement.h"
#include "harness/schema/schema.h"
#include "platform/platform.h"

namespace perdura::harness {

// Properties of the server that the testbed determines, in addition to what a point says, as values
// of the parameters; empty: not known.
struct Testbed {
  std::string ddio;
  std::string transport;
};

// A file that a point is made from, beside its experiment: a workload, a trace.
struct PointFile {
  std::string kind;  // "workload"
  Located name;      // as it was written
  std::string name_in_results;
  std::filesystem::path file;
  FileSettings settings{};
};

// What a driver makes of a point before it runs, such as the workload that it names.
struct PreparedPoint {
  virtual ~PreparedPoint() = default;
};

struct Point {
  Point() = default;
  explicit Point(std::span<const Parameter> of_driver) : settings(of_driver) {}

  PointSettings settings;  // of a variant, with the name of the system that it runs
  Testbed testbed{};
  std::string system_name;     // as in results: a variant's own
  GivenParameters parameters;  // of the system
  std::map<std::string, std::string, std::less<>> parameter_places;  // where they were written
  const std::string& place_of(std::string_view parameter) const {
    const auto place = parameter_places.find(parameter);
    return place == parameter_places.end() ? settings.system.where : place->second;
  }
  pmem::WriteMeter::Level accounting = pmem::WriteMeter::Level::issued;
  Nanoseconds timeline_interval{};  // 0: nothing is recorded over time
  Roles roles;
  std::uint64_t repetition = 0;
  std::uint64_t seed = 1;  // the experiment's plus the repetition
  std::string label;       // "erda workloadc value_size=64": what the sweep varies

  // What the driver has made of it (Driver::prepare).
  std::vector<PointFile> files;
  std::uint64_t operations = 0;  // of the whole run: loading and warming up, too
  std::shared_ptr<const PreparedPoint> prepared;
};

// A driver runs points: the code that drives one kind of system and measures it.
class Driver {
 public:
  virtual ~Driver() = default;
  virtual std::string_view name() const = 0;
  // Of its points: all that [workload] may say and [matrix] may vary beside what every point has.
  // What identifies a point is a column of points.csv.
  virtual std::span<const Parameter> parameters() const = 0;
  // The names that [systems.NAME] may have, and what each may say.
  virtual std::vector<DriverDeclarations::System> systems() const = 0;
  // Reads the files that the point names, and puts the numbers that they give into its settings, if
  // the experiment has none. Throws UsageError if that is impossible.
  virtual void prepare(Point&, const Locations&) const {}
  // Throws UsageError if the point asks for something impossible. Called for all points before any
  // runs.
  virtual void check(const Point& point) const = 0;
  // Throws UsageError if points cannot run on the platform of this name; `where` it was chosen.
  virtual void check_platform(std::string_view, const std::string&) const {}
  // The same of a point.
  virtual void check_platform_of(const Point&, std::string_view, const std::string&) const {}
  // Remarks, one line each, on points that are run differently from what their files say.
  virtual std::vector<std::string> remarks(const std::vector<Point>&) const { return {}; }
  // What the nodes of a point are there for. `nodes`: how many there are if the point does not say;
  // 0: as many as it takes.
  virtual Roles roles(const PointSettings& settings, NodeId nodes) const = 0;
  // What is measured of a system beside what the harness measures of all: further columns of
  // points.csv.
  virtual std::vector<report::Column> columns(std::string_view) const { return {}; }
  // Those of them that the results of a point have.
  virtual std::vector<report::Column> columns_of(const Point& point) const {
    return columns(point.settings.system.text);
  }
  // Parameters that identify points and are columns only of results in which one of them is not as
  // usual: readers take a column that is not there to say what is usual.
  virtual std::span<const std::string_view> columns_if_unusual() const { return {}; }
  // Runs this process' share of the point on a fresh platform, whose nodes have the point's roles,
  // and measures it. What a system reports ends up in the verdict; an exception means that the run
  // cannot go on.
  virtual Measurement run(Platform& platform, const Point& point) const = 0;
  // Memory that a point takes where one process is all of its nodes: an estimate from what the
  // point says and from what was measured of others, such as what a session costs. Nothing if
  // unknown.
  virtual std::optional<Bytes> memory(const Point&) const { return std::nullopt; }
  // The parameters that the memory grows with, for advice to the user: "clients or records".
  virtual std::string_view takes_memory() const { return "its numbers"; }
  // Performs the judgments that need the shares of all processes, such as the check of their
  // history. Called once per point, by one process, with the merged measurement.
  virtual void conclude(const Point&, Measurement&) const {}
};

// What experiments of these drivers may say.
Declarations declarations_of(std::span<const Driver* const> drivers);
// The columns of points.csv that the points have.
report::Schema schema_of(const Driver& driver, const std::vector<Point>& points);

// All points of the sweep, repetitions included, in the order in which results are written. Throws
// UsageError, naming the point or the place in the experiment, if one of them cannot be run.
// `nodes` as for Driver::roles.
std::vector<Point> plan_points(const Experiment& experiment, const Locations& locations,
                               const Driver& driver, NodeId nodes);

}  // namespace perdura::harness
