// An experiment: the contents of an experiments/*.toml (experiments/README.md), checked as far as
// the file and the drivers' declarations allow. Which workloads and profiles exist is checked when
// points are planned (harness/run/point.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/config/declarations.h"
#include "harness/config/override.h"
#include "harness/schema/spec.h"
#include "platform/base/parameter_values.h"
#include "platform/platform.h"

namespace perdura::harness {

class Document;

// A name and the place where it was written, for error messages when it is looked up.
struct Located {
  std::string text;
  std::string where;
};

// The settings of one point of a sweep: those that the harness knows for every point, and the
// values of its driver's parameters.
class PointSettings : public ParameterValues {
 public:
  PointSettings() = default;
  explicit PointSettings(std::span<const Parameter> of_driver) : ParameterValues(of_driver) {}

  Located system;

  // How the threads of a role wait for completions.
  CompletionMode completion(std::string_view role) const;
  void set_completion(CompletionMode mode) { completion_ = mode; }
  void set_completion(const std::string& role, CompletionMode mode) { of_role_[role] = mode; }

 private:
  CompletionMode completion_ = CompletionMode::event;
  std::map<std::string, CompletionMode, std::less<>> of_role_;
};

// A parameter that a sweep varies. Values are in the order of the file.
struct Axis {
  struct Value {
    ParameterValue value;
    std::string where;
  };
  std::string parameter;
  std::vector<Value> values;
};

// A [systems.NAME]: parameters of a system, or of a variant of one under a name of its own.
struct SystemSettings {
  std::string where;
  Located variant_of;  // text is empty if NAME is a system itself
  GivenParameters parameters;
  std::map<std::string, std::string, std::less<>> places;  // where the parameters were written
  // [systems.NAME.workload]: parameters of the driver that replace those of [workload].
  GivenParameters workload{};
  std::map<std::string, std::string, std::less<>> workload_places{};
};

// Used on `shm` only.
struct ShmSettings {
  std::uint64_t network_latency_ns = 0;  // added to each operation, in each direction
  std::uint64_t write_latency_ns = 0;    // added to each line written back
  Located pm_directory{};                // empty text: chosen by the platform
};

// Used on `verbs` only.
struct VerbsSettings {
  std::string device{};                 // empty: chosen by the site or the platform
  std::optional<std::uint64_t> port{};  // likewise
  std::optional<std::uint64_t> gid_index{};
  bool on_demand_paging = false;
  Located pm_directory{};  // empty text: chosen by the platform
};

struct Experiment {
  std::string name;
  std::string description;
  Located driver;
  Located platform;
  Located profile;  // empty text: none
  std::uint64_t seed = 1;
  std::uint64_t repetitions = 1;
  pmem::WriteMeter::Level accounting = pmem::WriteMeter::Level::issued;
  DriverDeclarations declared;  // what its driver declares
  PointSettings base;
  std::vector<Axis> matrix;  // the last one varies fastest
  std::map<std::string, SystemSettings, std::less<>> systems;
  ShmSettings shm;
  VerbsSettings verbs;
  Nanoseconds timeline_interval{};  // 0: no timeline is recorded
  schema::Specs specs;              // the figures and tables of its report
  std::string file;                 // the file that it was read from
  std::string text;                 // the TOML text, overrides applied
};

// Throws UsageError with the origin (file and line, or override) and the problem.
Experiment read_experiment(const Document& document, const Declarations& declarations);
Experiment load_experiment(const std::filesystem::path& file, const Declarations& declarations,
                           std::span<const Override> overrides = {});

// The cross product of the matrix, in the order in which points are run and written. Never empty.
std::vector<PointSettings> expand(const Experiment& experiment);

}  // namespace perdura::harness
