#include "report/program/commands.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "harness/text/output_place.h"
#include "platform/base/error.h"
#include "platform/base/path_kind.h"

namespace perdura::report {

std::span<const Command> commands() {
  static constexpr std::array<Command, 3> kCommands{
      {{"report", "Draws the figures and tables of a result folder", declare_report},
       {"claims",
        "Checks the papers' claims against a result folder: what holds, what differs, and why",
        declare_claims},
       {"compare",
        "Says what got worse from one run to another: exit code 1 if anything did, or was lost",
        declare_compare}}};
  return kCommands;
}

void check_result_folder(std::string_view command, const std::string& folder) {
  if (kind_of(folder) == PathKind::folder) return;
  throw UsageError(fmt::format("{} {}: {}; give one that 'perdura run' wrote", command, folder,
                               not_a_folder(folder)));
}

void check_output_folder(std::string_view command, const std::string& folder) {
  const std::string problem = harness::problem_with_output_folder(folder);
  if (!problem.empty()) {
    throw UsageError(fmt::format("{}: --out {}: {}", command, folder, problem));
  }
}

}  // namespace perdura::report
