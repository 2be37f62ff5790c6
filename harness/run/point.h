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

// Properties of the server that the testbed determines, in addition to the point's own settings, as
// values of the parameters; empty if unknown.
struct Testbed {
  std::string ddio;
  std::string transport;
};

// A file other than the experiment that a point is made from: a workload, a trace.
struct PointFile {
  std::string kind;  // "workload"
  Located name;      // as written in the experiment
  std::string name_in_results;
  std::filesystem::path file;
  FileSettings settings{};
};

// Data that a driver derives from a point before it runs, such as the parsed workload.
struct PreparedPoint {
  virtual ~PreparedPoint() = default;
};

struct Point {
  Point() = default;
  explicit Point(std::span<const Parameter> of_driver) : settings(of_driver) {}

  PointSettings settings;  // `system` of a variant is the system that it varies
  Testbed testbed{};
  std::string system_name;     // as in results: for a variant, its own name
  GivenParameters parameters;  // parameters of the system
  std::map<std::string, std::string, std::less<>> parameter_places;  // where each was written
  // Where a parameter of the system, or a setting of the same name, was written; the place of the
  // system if nobody wrote it.
  const std::string& place_of(std::string_view parameter) const;
  pmem::WriteMeter::Level accounting = pmem::WriteMeter::Level::issued;
  Nanoseconds timeline_interval{};  // 0: no timeline is recorded
  Roles roles;
  std::uint64_t repetition = 0;
  std::uint64_t seed = 1;  // the experiment's plus the repetition
  std::string label;       // "erda workloadc value_size=64": what the sweep varies

  // Set by Driver::prepare().
  std::vector<PointFile> files;
  std::uint64_t operations = 0;  // operations of the whole run, including loading and warming up
  std::shared_ptr<const PreparedPoint> prepared;
};

// A driver runs points: the code that drives one kind of system and measures it.
class Driver {
 public:
  virtual ~Driver() = default;
  virtual std::string_view name() const = 0;
  // The parameters of its points that [workload] may set and [matrix] may vary, in addition to
  // those that every point has. Parameters that identify a point are columns of points.csv.
  virtual std::span<const Parameter> parameters() const = 0;
  // The systems that [systems.NAME] may name, each with its parameters.
  virtual std::vector<DriverDeclarations::System> systems() const = 0;
  // Reads the files that the point names, and copies numbers from them into its settings unless the
  // experiment sets them. Throws UsageError if that is impossible.
  virtual void prepare(Point&, const Locations&) const {}
  // Throws UsageError if the point asks for something impossible. Called for all points before any
  // runs.
  virtual void check(const Point& point) const = 0;
  // Throws UsageError if this driver's points cannot run on the platform; `where` it was chosen is
  // the second argument.
  virtual void check_platform(std::string_view, const std::string&) const {}
  // The same for a single point.
  virtual void check_platform_of(const Point&, std::string_view, const std::string&) const {}
  // Remarks, one line each, on points that are run differently from what their files say.
  virtual std::vector<std::string> remarks(const std::vector<Point>&) const { return {}; }
  // The roles of a point's nodes. `nodes` is how many there are if the point does not say; 0 means
  // as many as needed.
  virtual Roles roles(const PointSettings& settings, NodeId nodes) const = 0;
  // The metrics of a system beyond those that the harness measures for all: further columns of
  // points.csv.
  virtual std::vector<schema::Column> columns(std::string_view) const { return {}; }
  // The subset of them that a point's results have.
  virtual std::vector<schema::Column> columns_of(const Point& point) const {
    return columns(point.settings.system.text);
  }
  // Identifying parameters that get a column only if some point sets an unusual value. Readers
  // treat a missing column as the usual value.
  virtual std::span<const std::string_view> columns_if_unusual() const { return {}; }
  // Runs this process's share of the point on a fresh platform, whose nodes have the point's roles,
  // and measures it. Failures of the system become the verdict; an exception means that the run
  // cannot go on.
  virtual Measurement run(Platform& platform, const Point& point) const = 0;
  // Estimates the memory of a point in a process that runs all of its nodes, from the point's
  // settings and from measured costs, such as that of a session. Returns nullopt if unknown.
  virtual std::optional<Bytes> memory(const Point&) const { return std::nullopt; }
  // Persistent memory that all nodes of a point take together as soon as it begins, on platforms of
  // real memory, which is taken at once. Returns nothing if it is not known in advance.
  virtual std::optional<Bytes> persistent_memory(const Point&) const { return std::nullopt; }
  // Where the point keeps its data if that is not the platform's persistent memory but a mounted
  // file system, which is measured; else empty.
  virtual std::filesystem::path directory_of_data(const Point&) const { return ""; }
  // The parameters that the memory grows with, for advice to the user: "clients or records".
  virtual std::string_view takes_memory() const { return "its numbers"; }
  // Makes the judgments that need the shares of all processes, such as checking their combined
  // history. Called once per point, by one process, with the merged measurement.
  virtual void conclude(const Point&, Measurement&) const {}
};

// The union of what experiments of these drivers may contain.
Declarations declarations_of(std::span<const Driver* const> drivers);
// The columns of points.csv that the points have.
schema::Schema schema_of(const Driver& driver, const std::vector<Point>& points);

// All points of the sweep, repetitions included, in the order in which results are written. Throws
// UsageError, naming the point or the place in the experiment, if one of them cannot be run.
// `nodes` as for Driver::roles.
std::vector<Point> plan_points(const Experiment& experiment, const Locations& locations,
                               const Driver& driver, NodeId nodes);

}  // namespace perdura::harness
