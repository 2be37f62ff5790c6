// perdura guarantees: the tables of guarantees of methods and systems, as CSV and as text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <optional>

#include "explore/crash.h"
#include "explore/explored.h"
#include "harness/run/long_work.h"
#include "harness/text/atomic_file.h"
#include "harness/text/output_place.h"
#include "methods/matrices.h"
#include "platform/base/error.h"
#include "platform/base/json.h"
#include "platform/base/limits.h"
#include "platform/base/path_kind.h"
#include "platform/host/os_thread.h"
#include "program/commands.h"
#include "report/guarantees.h"
#include "systems/registry/registry.h"

namespace perdura::program {
namespace {

namespace fs = std::filesystem;
using methods::Matrix;

report::GuaranteeTable table_of(const Matrix& matrix) {
  report::GuaranteeTable table{matrix.name, matrix.title, matrix.caption, matrix.verdicts, {}};
  table.cells.header = matrix.header;
  for (const auto& row : matrix.rows) table.cells.rows.push_back({0, row});
  return table;
}

std::string markdown_of(const Matrix& matrix) {
  std::string text = fmt::format("## {}\n\n{}\n\n", matrix.title, matrix.caption);
  const auto line = [&](const std::vector<std::string>& cells) {
    for (const std::string& cell : cells) text += fmt::format("| {} ", cell);
    text += "|\n";
  };
  line(matrix.header);
  for (std::size_t i = 0; i < matrix.header.size(); ++i) text += "|---";
  text += "|\n";
  for (auto row : matrix.rows) {
    for (std::string& cell : row) {
      for (std::size_t at = 0; (at = cell.find(" | ", at)) != std::string::npos;) {
        cell.replace(at, 3, "; ");
      }
    }
    line(row);
  }
  return text + "\n";
}

struct Exploration {
  services::ServedSystem system;
  explore::CrashOptions options;
  std::string name;
  bool keeps_nothing = false;
  std::promise<std::string> found{};
  std::future<std::string> guarantee = found.get_future();
};

// The cell of an exploration whose result is known without running it; nullopt for any other.
std::optional<std::string> known_before(const Exploration& exploration,
                                        const sim::Profile& profile) {
  const services::SystemInfo& system = exploration.system.info;
  const std::string refused = explore::refusal(system, exploration.options.setup, profile.nic);
  if (!refused.empty()) return fmt::format("{}{}", explore::kRefused, refused);
  if (exploration.keeps_nothing) return std::string(to_string(services::GuaranteeLevel::none));
  return std::nullopt;
}

// Groups explorations of about the same cost, for the estimate of the time left.
std::string server_kind(const Exploration& exploration, const sim::Profile& profile) {
  return known_before(exploration, profile) ? "known before"
                                            : std::string(exploration.system.info.name);
}

// Explores and returns the cell. An exploration that fails yields a cell that says so, and does not
// prevent the others.
std::string explored(Exploration& exploration, const sim::Profile& profile) {
  if (auto known = known_before(exploration, profile)) return std::move(*known);
  exploration.options.progress = [](double) { harness::LongWork::stop_if_interrupted(); };
  try {
    const explore::CrashResult result =
        explore_crashes(exploration.system, profile, exploration.options);
    if (!result.unexplored.empty()) {
      return fmt::format("{}explored nothing of: {}", explore::kRefused,
                         fmt::join(result.unexplored, ", "));
    }
    return std::string(to_string(result.strongest()));
  } catch (const std::exception& error) {
    rethrow_refused_memory(error);
    const std::string_view why = error.what();
    return fmt::format("{}{}", explore::kRefused, why.substr(0, why.find('\n')));
  }
}

// Orders the first exploration of each kind, then the second of each, and so on. Some kinds take
// fifty times as long as others; this way a cost of each is known early, and with it the time left.
std::vector<std::size_t> by_turns(const std::vector<std::string>& kinds) {
  std::map<std::string, std::size_t> before;
  std::vector<std::pair<std::size_t, std::size_t>> turns;
  for (std::size_t i = 0; i < kinds.size(); ++i) turns.emplace_back(before[kinds[i]]++, i);
  std::sort(turns.begin(), turns.end());
  std::vector<std::size_t> order;
  for (const auto& [turn, index] : turns) order.push_back(index);
  return order;
}

// Explores on all cores. Each exploration runs on one thread, so the results do not depend on how
// they are distributed.
void explore_all(std::vector<Exploration>& explorations, const sim::Profile& profile,
                 harness::LongWork& work) {
  std::vector<std::string> kinds;
  std::map<std::string, std::size_t> parts;
  for (const Exploration& exploration : explorations) {
    kinds.push_back(server_kind(exploration, profile));
    ++parts[kinds.back()];
  }
  work.expect(parts);
  const std::vector<std::size_t> order = by_turns(kinds);
  share_out(0, explorations.size(), [&](std::size_t turn) {
    Exploration& exploration = explorations[order[turn]];
    const auto began = std::chrono::steady_clock::now();
    try {
      // Explorations check for interruption only now and then.
      harness::LongWork::stop_if_interrupted();
      const std::string cell = explored(exploration, profile);
      work.end(exploration.name, cell, kinds[order[turn]],
               std::chrono::steady_clock::now() - began);
      exploration.found.set_value(cell);
    } catch (...) {
      exploration.found.set_exception(std::current_exception());
    }
  });
}

// The table of whole systems, with a row for each setting that changes the guarantee.
class SystemsMatrix {
 public:
  // Includes only the named systems, or all of them if `names` is empty.
  explicit SystemsMatrix(const std::vector<std::string>& names) {
    for (const pmem::PersistenceModel& model : models_) {
      matrix_.header.push_back(explore::explored_name(model));
    }
    for (const services::ServedSystem& system : systems::all_systems()) {
      const bool wanted =
          names.empty() || std::find(names.begin(), names.end(), system.info.name) != names.end();
      if (!wanted) continue;
      for (const explore::ExploredSetting& setting : explore::explored_settings(system.info)) {
        matrix_.rows.push_back({explore::explored_name(system.info, setting)});
        for (const pmem::PersistenceModel& model : models_) {
          explore::CrashOptions options;
          options.setup.model = model;
          options.setup.parameters = setting.parameters;
          options.setup.correct = setting.correct;
          options.threads = 1;
          explorations_.push_back(Exploration{
              system, std::move(options),
              fmt::format("{} on {}", matrix_.rows.back().front(), explore::explored_name(model)),
              setting.keeps_nothing});
        }
      }
    }
  }

  std::size_t explorations() const { return explorations_.size(); }

  // The guarantees in the table that was built into the program.
  Matrix built_in() {
    for (std::size_t i = 0; i < explorations_.size(); ++i) {
      const Exploration& exploration = explorations_[i];
      const auto& setup = exploration.options.setup;
      const auto cell = explore::explored_cell(exploration.system.info, setup.parameters,
                                               setup.correct, setup.model);
      std::string word = "not explored";
      if (cell && cell->level) word = to_string(*cell->level);
      if (cell && !cell->level) word = fmt::format("{}{}", explore::kRefused, cell->refused);
      matrix_.rows[i / models_.size()].push_back(std::move(word));
    }
    matrix_.caption += fmt::format(
        " Not explored now: the table is the one that the program has built in, of revision {} of "
        "explore/explored.csv.",
        explore::explored_revision());
    return std::move(matrix_);
  }

  Matrix explore(const sim::Profile& profile, harness::LongWork& work) {
    explore_all(explorations_, profile, work);
    for (std::size_t i = 0; i < explorations_.size(); ++i) {
      matrix_.rows[i / models_.size()].push_back(explorations_[i].guarantee.get());
    }
    return std::move(matrix_);
  }

 private:
  std::vector<pmem::PersistenceModel> models_ = explore::explored_models();
  std::vector<Exploration> explorations_;
  Matrix matrix_{
      "systems",
      "What a completed operation of each system guarantees",
      "Explored, with the server's power failing at every crash point of two small histories: one "
      "of "
      "two "
      "writers, one of a slow writer whose values a reader gets before they are acknowledged. "
      "durable: durable linearizability, nothing that a completed operation told is lost; "
      "durable-writes: every acknowledged write survives, but what a get returned of a write that "
      "was not yet acknowledged may be lost; ordered: of each key at most the last change is lost "
      "(buffered durable linearizability of each key, with a buffer of one change); "
      "atomic: of each key one of the states that it ever had is found; none: not even that. "
      "Systems persist as in their papers, or by the method for the configuration "
      "(persistence = correct). Refused: where a system cannot run, or has no method that is "
      "right. Devices commit where a setting needs that. "
      "Receive buffers are where a system puts them, so they make no "
      "columns.",
      true,
      {"system"},
      {}};
};

constexpr const char* kTables = "tables.md";

void print_json(const std::string& folder, const std::vector<report::GuaranteeTable>& tables) {
  Json list = Json::array();
  for (const report::GuaranteeTable& table : tables) {
    Json rows = Json::array();
    for (const auto& row : table.cells.rows) rows.push_back(row.cells);
    list.push_back({{"name", table.name},
                    {"title", table.title},
                    {"caption", table.caption},
                    {"header", table.cells.header},
                    {"rows", std::move(rows)}});
  }
  const Json output{{"folder", folder}, {"tables", std::move(list)}};
  fmt::print("{}\n", output.dump(2));
}

struct Arguments {
  std::string folder = "out/guarantees";
  std::vector<std::string> names{};
  bool built_in = false;
  bool as_json = false;
};

harness::ExitCode guarantees(const Arguments& arguments, const CommandContext& context) {
  const auto& [folder, names, built_in, as_json] = arguments;
  if (!context.ranks.is_root()) return harness::ExitCode::done;
  if (const std::string unwritable = harness::problem_with_output_folder(folder);
      !unwritable.empty()) {
    throw UsageError(fmt::format("guarantees: --out {}: {}", folder, unwritable));
  }
  if (is_folder(folder) && !names_in(folder).empty() && !is_there(fs::path(folder) / kTables)) {
    throw UsageError(
        fmt::format("guarantees: --out {}: is not empty, and holds no tables of guarantees; name "
                    "another folder",
                    folder));
  }
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem) throw UsageError(fmt::format("guarantees: --out {}: {}", folder, problem.message()));
  std::string text =
      "# What is guaranteed when the power fails\n\n"
      "Written by `perdura guarantees`; [guarantees.md](guarantees.md) explains the words, "
      "[persistence.md](persistence.md) the model.\n\n";
  std::vector<report::GuaranteeTable> tables;
  const sim::Profile profile = sim::load_profile(
      context.locations.find(harness::FileKind::profile, {"erda-connectx3", ""}).string());
  SystemsMatrix systems(names);
  using MakeMatrix = Matrix (*)();
  std::vector<MakeMatrix> of_methods;
  if (names.empty()) {
    of_methods = {methods::cells_matrix, methods::steps_matrix, methods::transfer_matrix};
  }
  harness::LongWork work(of_methods.size() + (built_in ? 0 : systems.explorations()),
                         context.ranks);
  const auto add = [&](const Matrix& matrix) {
    text += markdown_of(matrix);
    tables.push_back(table_of(matrix));
  };
  for (const MakeMatrix matrix_of : of_methods) {
    add(matrix_of());
    work.end(tables.back().title, "proven");
  }
  add(built_in ? systems.built_in() : systems.explore(profile, work));
  work.close();
  text.pop_back();
  harness::write_atomically(fs::path(folder) / kTables, text);
  if (const auto written = report::write_guarantees(folder, tables); !written) {
    throw PlatformError(written.error().message);
  }
  if (as_json) {
    print_json(folder, tables);
  } else {
    fmt::print("{}\n", folder);
  }
  return harness::ExitCode::done;
}

}  // namespace

void add_guarantees(harness::Command& program, CommandContext& context) {
  const auto arguments = std::make_shared<Arguments>();
  harness::Command& command = program.subcommand(
      "guarantees", "Proves all methods on all configurations and writes the tables");
  std::vector<std::string> known;
  for (const auto& system : systems::all_systems()) known.emplace_back(system.info.name);
  command.option("systems", arguments->names, "Only the table of these systems").one_of(known);
  command.option("-o,--out", arguments->folder, "Folder for the tables (default: out/guarantees)");
  command.flag("--built-in", arguments->built_in,
               "Explores no system: its table is the one that was explored when the program was "
               "built");
  command.flag("--json", arguments->as_json, "Also writes the tables to stdout, as JSON");
  command.does([arguments, &context] { return guarantees(*arguments, context); });
}

}  // namespace perdura::program
