// perdura history: checks a recorded history, and converts it for other checkers.
#include <fmt/format.h>

#include <memory>

#include "harness/text/atomic_file.h"
#include "harness/text/output_place.h"
#include "harness/text/whole_file.h"
#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "program/commands.h"
#include "services/kv/history/checker.h"
#include "services/kv/history/formats.h"
#include "services/kv/history/recorded_elsewhere.h"

namespace perdura::program {
namespace {

using services::Linearizability;

struct HistoryArguments {
  std::string file;
  std::string edn;
  std::optional<std::string> initial;
  std::size_t configurations = services::kMostConfigurations;
};

harness::ExitCode exit_code_of(Linearizability::Decision decision) {
  switch (decision) {
    case Linearizability::Decision::linearizable:
      return harness::ExitCode::done;
    case Linearizability::Decision::violated:
      return harness::ExitCode::failed;
    case Linearizability::Decision::undecided:
      break;
  }
  return harness::ExitCode::undecided;
}

// A history in perdura's own format, in which each put has a version; nullopt for another format.
std::optional<history::History> own_history(const std::string& text) {
  try {
    return history::from_json(text);
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

harness::ExitCode check_own(const history::History& history, const HistoryArguments& arguments) {
  if (!arguments.edn.empty()) harness::write_atomically(arguments.edn, history::to_edn(history));
  const history::CheckResult verdict = history::check(history);
  fmt::print("{}\n", describe(verdict));
  if (verdict.keys_violated != 0) return harness::ExitCode::failed;
  return verdict.accepted() ? harness::ExitCode::done : harness::ExitCode::undecided;
}

harness::ExitCode check_file(const HistoryArguments& arguments, const CommandContext& context) {
  if (!context.ranks.is_root()) return harness::ExitCode::done;
  if (!arguments.edn.empty()) {
    const std::string problem = harness::problem_with_output_file(arguments.edn);
    if (!problem.empty()) {
      throw UsageError(fmt::format("history: --edn {}: {}", arguments.edn, problem));
    }
  }
  const auto text = harness::read_whole(arguments.file);
  if (!text) {
    throw UsageError(fmt::format("history: {}: {}", arguments.file, not_a_file(arguments.file)));
  }
  const history::Notation notation = history::notation_of(*text);
  const bool plain =
      !arguments.initial && arguments.configurations == services::kMostConfigurations;
  if (notation == history::Notation::json && plain) {
    if (const auto own = own_history(*text)) return check_own(*own, arguments);
  }
  if (!arguments.edn.empty()) {
    throw UsageError(fmt::format(
        "history: --edn: {} is no history as 'perdura run' writes it; only such are written as EDN",
        arguments.file));
  }
  history::RegisterHistory recorded;
  try {
    recorded = history::read_recorded(*text, notation);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("history: {}: {}", arguments.file, error.what()));
  }
  const history::RegisterVerdict verdict = history::check_registers(
      recorded, {.at_first = arguments.initial, .configurations = arguments.configurations});
  fmt::print("{}\n", verdict.what);
  return exit_code_of(verdict.decision);
}

}  // namespace

void add_history(harness::Command& program, CommandContext& context) {
  const auto arguments = std::make_shared<HistoryArguments>();
  harness::Command& command =
      program.subcommand("history",
                         "Checks a recorded history for linearizability; ends with "
                         "1 if it is not linearizable, with 3 "
                         "if that cannot be decided");
  command
      .option("file", arguments->file,
              "A history in JSON, as runs with workload.history_folder write it, or as Porcupine "
              "does; in EDN, as Jepsen writes it; or a log of jepsen.util")
      .required();
  command.option("--edn", arguments->edn,
                 "Also writes a history of perdura's own to this file for Jepsen's checkers");
  command
      .option("--initial", arguments->initial,
              "What registers hold at first, as the file writes it; otherwise nothing (nil)")
      .may_be_empty();
  command
      .option("--configurations", arguments->configurations,
              "How many configurations the general search visits for a key before it gives up")
      .whole_number(1, 1ULL << 40);
  command.does([arguments, &context] { return check_file(*arguments, context); });
}

}  // namespace perdura::program
