// An experiment: what experiments/*.toml says (experiments/README.md), checked as far as the file
// alone allows. Which systems, workloads and profiles exist is checked by harness/run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "harness/config/document.h"
#include "harness/schema/spec.h"
#include "platform/platform.h"

namespace perdura::harness {

// A name and the place where it was written, for messages of those who look it up.
struct Located {
  std::string text;
  std::string where;
};

// One point of a sweep. What is absent is left to the workload's file.
struct PointSettings {
  Located system;
  Located workload;
  std::optional<std::uint64_t> records;
  std::optional<std::uint64_t> operations;  // measured, of all clients together
  std::uint64_t warmup = 0;               // operations before the measured interval, of all clients
  std::optional<std::uint64_t> key_size;  // bytes
  std::optional<std::uint64_t> value_size;    // bytes
  std::uint64_t clients = 1;                  // client threads over all nodes
  std::optional<std::uint64_t> client_nodes;  // absent: one, or all that mpirun started
  std::uint64_t queue_depth = 1;              // operations under way per client thread
  std::uint64_t server_threads = 1;
  std::optional<std::uint64_t>
      resizes;                  // that a hash table may grow by; absent: as its system says
  std::string load = "closed";  // or "fixed", "poisson": an open loop
  std::optional<std::uint64_t>
      offered_load;  // operations per second of all clients; open loop only
  std::optional<std::uint64_t>
      duration_ms;          // of the measured interval; absent: as the operations take
  bool until_full = false;  // the measured interval ends when the store is out of space
  std::optional<std::uint64_t>
      ramp_ms;                         // before the measured interval; absent: as the warm-up takes
  std::optional<double> steady_slope;  // the warm-up lasts until the rate changes by less than this
  std::optional<std::uint64_t> steady_window_ms;  // within such a window
  CompletionMode server_completion = CompletionMode::event;
  CompletionMode client_completion = CompletionMode::event;
  bool check_history = false;  // record all operations and check them (docs/history.md)
  // The server as a responder of remote updates (Table 1 of "Correct, Fast Remote Persistence"), in
  // the words of perdura's options; empty: not said.
  std::string domain;           // dmp, mhp, wsp
  std::string ddio;             // on, off; empty: on sim the profile's
  std::string receive_buffers;  // dram, pm
  std::string transport;        // ib, roce, iwarp
  std::string update;           // of a log's appends: single, ordered
  // How a key-value store's puts persist: as in its paper, or so that they are durable on this
  // server when they are acknowledged; empty: paper.
  std::string persistence;  // paper, correct
};

// A parameter that a sweep varies. Values are in the order of the file.
struct Axis {
  struct Value {
    std::variant<std::uint64_t, double, std::string> value;
    std::string where;
  };
  std::string parameter;
  std::vector<Value> values;
};

// A [systems.NAME]: parameters of a system, or a variant of one under a name of its own.
struct SystemSettings {
  std::string where;
  Located variant_of;  // text is empty if NAME is a system itself
  std::map<std::string, std::uint64_t, std::less<>> parameters;
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
// `schema`: the columns that figures may name.
Experiment read_experiment(const Document& document, const report::Schema& schema = {});
Experiment load_experiment(const std::filesystem::path& file,
                           std::span<const Override> overrides = {},
                           const report::Schema& schema = {});

// The cross product, in the order in which points are run and written. Never empty.
std::vector<PointSettings> expand(const Experiment& experiment);

}  // namespace perdura::harness
