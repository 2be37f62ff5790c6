// The commands that read result folders and nothing else: each is one of the program `perdura`, and
// a program of its own, `perdura-report` and so on, which needs neither MPI nor RDMA.
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

/// What a command finds in the program that it is part of.
struct Surroundings {
  const harness::DataFolders& data;
  /// Begins to watch work of so many parts.
  std::function<std::unique_ptr<harness::WorkWatch>(std::size_t parts)> watch;
  /// Is called repeatedly while a figure is being drawn; what it throws ends the command.
  std::function<void()> while_drawing;
};

/// Throws UsageError or PlatformError.
using Work = std::function<harness::ExitCode(const Surroundings&)>;

struct Command {
  std::string_view name;
  std::string_view what;
  /// Adds the command's arguments. The answer does the work when they have been parsed.
  Work (*declare)(harness::Command& command);
};

/// In the order in which help names them.
std::span<const Command> commands();

/// Throws UsageError unless there is a folder of that name that may hold results.
void check_result_folder(std::string_view command, const std::string& folder);

Work declare_report(harness::Command& command);
Work declare_claims(harness::Command& command);
Work declare_compare(harness::Command& command);

}  // namespace perdura::report
