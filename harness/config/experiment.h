// An experiment: what experiments/*.toml says (experiments/README.md), checked as far as the file
// and what drivers declare allow. Which workloads and profiles exist is checked when points are
// planned (harness/run/point.h).
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

// One point of a sweep: what the harness knows of every point, and the values of its driver's
// parameters.
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

// A [systems.NAME]: parameters of a system, or a variant of one under a name of its own.
struct SystemSettings {
  std::string where;
  Located variant_of;  // text is empty if NAME is a system itself
  GivenParameters parameters;
  std::map<std::string, std::string, std::less<>> places;  // where the parameters were written
};

// Used on `shm` only.
struct ShmSettings {
  std::uint64_t network_latency_ns = 0;  // added to each operation, one way
  std::uint64_t write_latency_ns = 0;    // added to each line that is written back
  Located pm_directory{};                // text is empty: the platform's choice
};

// Used on `verbs` only.
struct VerbsSettings {
  std::string device{};                 // empty: the site's, or the platform's choice
  std::optional<std::uint64_t> port{};  // likewise
  std::optional<std::uint64_t> gid_index{};
  bool on_demand_paging = false;
  Located pm_directory{};  // text is empty: the platform's choice
};

struct Experiment {
  std::string name;
  std::string description;
  Located driver;
  Located platform;
  Located profile;  // text is empty if there is none
  std::uint64_t seed = 1;
  std::uint64_t repetitions = 1;
  pmem::WriteMeter::Level accounting = pmem::WriteMeter::Level::issued;
  DriverDeclarations declared;  // of its driver
  PointSettings base;
  std::vector<Axis> matrix;  // the last one varies fastest
  std::map<std::string, SystemSettings, std::less<>> systems;
  ShmSettings shm;
  VerbsSettings verbs;
  Nanoseconds timeline_interval{};  // 0: nothing is recorded over time
  report::Specs specs;              // the figures and tables that a report is to draw
  std::string file;                 // where it was read
  std::string text;                 // the TOML text, overrides applied
};

// Throws UsageError with file and line, or the override, and what is wrong.
Experiment read_experiment(const Document& document, const Declarations& declarations);
Experiment load_experiment(const std::filesystem::path& file, const Declarations& declarations,
                           std::span<const Override> overrides = {});

// The cross product, in the order in which points are run and written. Never empty.
std::vector<PointSettings> expand(const Experiment& experiment);

}  // namespace perdura::harness
