// The commands that only read result folders: each is a command of the program `perdura`, and a
// program of its own, `perdura-report` and so on, which needs neither MPI nor RDMA.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "harness/program/command.h"
#include "harness/program/data_folders.h"
#include "harness/program/exit_code.h"
#include "harness/program/work_watch.h"

namespace perdura::report {

/// Services of the program that a command is part of.
struct Surroundings {
  const harness::DataFolders& data;
  /// Starts to watch work with `parts` parts.
  std::function<std::unique_ptr<harness::WorkWatch>(std::size_t parts)> watch;
  /// Called repeatedly while a figure is being drawn; an exception that it throws ends the command.
  std::function<void()> while_drawing;
};

/// Throws UsageError or PlatformError.
using Work = std::function<harness::ExitCode(const Surroundings&)>;

struct Command {
  std::string_view name;
  std::string_view what;
  /// Adds the command's arguments. The returned function does the work, once they have been parsed.
  Work (*declare)(harness::Command& command);
};

/// The commands, in the order in which help lists them.
std::span<const Command> commands();

/// Throws UsageError unless a folder of that name exists that may hold results.
void check_result_folder(std::string_view command, const std::string& folder);

/// Throws UsageError if the folder that --out names is none and cannot become one, or cannot be
/// written.
void check_output_folder(std::string_view command, const std::string& folder);

Work declare_report(harness::Command& command);
Work declare_claims(harness::Command& command);
Work declare_compare(harness::Command& command);

}  // namespace perdura::report
