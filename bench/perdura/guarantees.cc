// perdura guarantees: the tables of what methods and systems guarantee, as CSV and as text.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <thread>

#include "bench/crash/crash.h"
#include "bench/perdura/crash_arguments.h"
#include "harness/report/guarantees.h"
#include "platform/error.h"
#include "systems/kv.h"
#include "systems/persistence/matrices.h"

namespace perdura::harness {
namespace {

namespace fs = std::filesystem;
using persistence::Matrix;

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

void write(const fs::path& file, const std::string& text) {
  std::ofstream output(file, std::ios::binary);
  output << text;
  output.close();
  if (!output) {
    throw PlatformError(fmt::format(
        "{}: cannot be written; check the permissions and the free space", file.string()));
  }
}

struct Exploration {
  const systems::KvSystem& system;
  bench::CrashOptions options;
  std::promise<std::string> found{};
  std::future<std::string> guarantee = found.get_future();
};

// On all cores: each explores by itself, and the results do not depend on who does which.
void explore_all(std::vector<Exploration>& explorations, const sim::Profile& profile) {
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> workers;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    workers.emplace_back([&] {
      for (std::size_t mine; (mine = next++) < explorations.size();) {
        Exploration& exploration = explorations[mine];
        try {
          exploration.found.set_value(std::string(
              explore_crashes(exploration.system, profile, exploration.options).strongest()));
        } catch (...) {
          exploration.found.set_exception(std::current_exception());
        }
      }
    });
  }
}

// Of whole systems: a row for each setting that changes what is guaranteed.
Matrix systems_matrix(const CommandContext& context) {
  const sim::Profile profile =
      sim::load_profile(context.locations.find(FileKind::profile, {"erda-connectx3", ""}).string());
  Matrix matrix{
      "systems",
      "What a completed operation of each system guarantees",
      "Explored, with the server's power failing at every moment of a small history. durable: "
      "nothing acknowledged is lost; ordered: of each key at most the last change is lost; "
      "atomic: of each key one of the states that it ever had is found; none: not even that. "
      "Systems persist as in their papers, or by the method for the configuration "
      "(persistence = correct). Receive buffers are where a system puts them, so they make no "
      "columns.",
      true,
      {"system"},
      {}};
  const auto models = system_models({});
  for (const pmem::PersistenceModel& model : models) {
    matrix.header.push_back(fmt::format("{} {}{}", to_string(model.domain),
                                        model.ddio ? "ddio" : "no-ddio",
                                        model.transport == pmem::Transport::iwarp ? " iwarp" : ""));
  }
  std::vector<Exploration> explorations;
  const auto add_row = [&](const systems::KvSystem& system, std::string_view setting,
                           const bench::CrashOptions& with) {
    matrix.rows.push_back(
        {fmt::format("{}{}{}", system.name, setting.empty() ? "" : ", ", setting)});
    for (const pmem::PersistenceModel& model : models) {
      Exploration& exploration = explorations.emplace_back(Exploration{system, with, {}});
      exploration.options.model = model;
    }
  };
  for (const systems::KvSystem& system : systems::kv_systems()) {
    add_row(system, "", {.model = {}, .random_images = 1});
    if (system.name == "erda") {
      add_row(system, "persist_before_update",
              {.model = {}, .parameters = {{"persist_before_update", 1}}, .random_images = 1});
    }
    add_row(system, "persistence = correct", {.model = {}, .correct = true, .random_images = 1});
  }
  explore_all(explorations, profile);
  for (std::size_t i = 0; i < explorations.size(); ++i) {
    matrix.rows[i / models.size()].push_back(explorations[i].guarantee.get());
  }
  return matrix;
}

ExitCode guarantees(const std::string& folder, const CommandContext& context) {
  if (!context.ranks.is_root()) return ExitCode::done;
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem) throw UsageError(fmt::format("guarantees: --out {}: {}", folder, problem.message()));
  std::string text =
      "# What is guaranteed when the power fails\n\n"
      "Written by `perdura guarantees`; [persistence.md](persistence.md) explains the model and "
      "the "
      "words.\n\n";
  std::vector<report::GuaranteeTable> tables;
  for (const Matrix& matrix : {persistence::cells_matrix(), persistence::steps_matrix(),
                               persistence::transfer_matrix(), systems_matrix(context)}) {
    text += markdown_of(matrix);
    tables.push_back(table_of(matrix));
  }
  text.pop_back();
  write(fs::path(folder) / "tables.md", text);
  if (const auto written = report::write_guarantees(folder, tables); !written) {
    throw PlatformError(written.error().message);
  }
  fmt::print("{}\n", folder);
  return ExitCode::done;
}

}  // namespace

void add_guarantees(CLI::App& app, CommandContext& context, Action& action) {
  const auto folder = std::make_shared<std::string>("out/guarantees");
  CLI::App* command = app.add_subcommand(
      "guarantees", "Proves all methods on all configurations and writes the tables");
  command->add_option("--out", *folder, "Folder for the tables (default: out/guarantees)");
  command->callback([folder, &context, &action] {
    action = [folder, &context] { return guarantees(*folder, context); };
  });
}

}  // namespace perdura::harness
