// perdura guarantees: the tables of what methods and systems guarantee, as CSV and as text.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "bench/perdura/commands.h"
#include "harness/report/csv_table.h"
#include "platform/error.h"
#include "systems/persistence/matrices.h"

namespace perdura::harness {
namespace {

namespace fs = std::filesystem;
using persistence::Matrix;

std::string csv_of(const Matrix& matrix) {
  std::string text;
  const auto line = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      text += fmt::format("{}{}", i == 0 ? "" : ",", report::csv_cell(cells[i]));
    }
    text += '\n';
  };
  line(matrix.header);
  for (const auto& row : matrix.rows) line(row);
  return text;
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
  std::string index;
  for (const Matrix& matrix :
       {persistence::cells_matrix(), persistence::steps_matrix(), persistence::transfer_matrix()}) {
    write(fs::path(folder) / (matrix.name + ".csv"), csv_of(matrix));
    text += markdown_of(matrix);
    index +=
        fmt::format("[[table]]\nname = \"{}\"\ntitle = \"{}\"\ncaption = '{}'\nverdicts = {}\n\n",
                    matrix.name, matrix.title, matrix.caption, matrix.verdicts);
  }
  text.pop_back();
  index.pop_back();
  write(fs::path(folder) / "tables.toml", index);
  write(fs::path(folder) / "tables.md", text);
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
