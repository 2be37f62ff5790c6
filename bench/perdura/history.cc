// perdura history: checks a recorded history, and writes it for other checkers.
#include <fmt/format.h>

#include <memory>

#include "bench/perdura/commands.h"
#include "harness/text/atomic_file.h"
#include "harness/text/path_kind.h"
#include "harness/text/whole_file.h"
#include "platform/base/error.h"
#include "services/kv/history/checker.h"
#include "services/kv/history/formats.h"

namespace perdura::harness {
namespace {

struct HistoryArguments {
  std::string file;
  std::string edn;
};

ExitCode check_file(const HistoryArguments& arguments, const CommandContext& context) {
  if (!context.ranks.is_root()) return ExitCode::done;
  const auto text = read_whole(arguments.file);
  if (!text) {
    throw UsageError(fmt::format("history: {}: {}", arguments.file, not_a_file(arguments.file)));
  }
  history::History history;
  try {
    history = history::from_json(*text);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("history: {}: {}", arguments.file, error.what()));
  }
  if (!arguments.edn.empty()) write_atomically(arguments.edn, history::to_edn(history));
  const history::CheckResult verdict = history::check(history);
  fmt::print("{}\n", describe(verdict));
  return verdict.accepted() ? ExitCode::done : ExitCode::failed;
}

}  // namespace

void add_history(Command& program, CommandContext& context) {
  const auto arguments = std::make_shared<HistoryArguments>();
  Command& command = program.subcommand(
      "history", "Checks a recorded history for linearizability; ends with 1 if it is not");
  command
      .option("file", arguments->file,
              "A history in JSON, as runs with workload.history_folder write it")
      .required();
  command.option("--edn", arguments->edn, "Also writes it to this file for Jepsen's checkers");
  command.does([arguments, &context] { return check_file(*arguments, context); });
}

}  // namespace perdura::harness
