// perdura: the command line of the suite. Exit codes: 0 done, 1 the work failed, 2 wrong usage.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/perdura/commands.h"
#include "harness/program/command_line.h"
#include "harness/program/help_formatter.h"
#include "harness/run/interrupt.h"
#include "harness/text/suggestion.h"
#include "platform/base/error.h"

namespace {

using perdura::harness::ExitCode;

std::string joined(int count, char** arguments) {
  std::string line;
  for (int i = 0; i < count; ++i) {
    const std::string_view argument = arguments[i];
    const bool plain =
        !argument.empty() && argument.find_first_of(" \t\"'$\\") == std::string::npos;
    if (i > 0) line += ' ';
    line += plain ? std::string(argument) : fmt::format("'{}'", argument);
  }
  return line;
}

ExitCode parse_and_run(int argc, char** argv, perdura::harness::Ranks& ranks) {
  using namespace perdura::harness;
  CommandContext context{.ranks = ranks, .command_line = joined(argc, argv)};
  CLI::App app("Benchmark and characterization suite for persistent memory behind RDMA", "perdura");
  app.formatter(std::make_shared<perdura::HelpFormatter>());
  app.set_version_flag("--version", version_of("perdura"));
  app.require_subcommand(1);
  app.footer(
      "Experiments, profiles, workloads and sites are looked up in $PERDURA_HOME, in the current "
      "folder, and in what was installed with perdura or is in its source tree.");
  Action action;
  add_list(app, context, action);
  add_plan(app, context, action);
  add_run(app, context, action);
  add_probe(app, context, action);
  add_reading(app, context, action);
  add_doctor(app, context, action);
  add_advise(app, context, action);
  add_crash(app, context, action);
  add_guarantees(app, context, action);
  add_history(app, context, action);
  add_soak(app, context, action);
  add_litmus(app, context, action);
  add_mcas(app, context, action);
  add_mojim(app, context, action);
  add_fs(app, context, action);
  add_completion(app, context, action);
  if (argc > 1 && argv[1][0] != '-') {
    std::vector<std::string> known;
    for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
    if (std::find(known.begin(), known.end(), argv[1]) == known.end()) {
      return complain(ranks.is_root(), ExitCode::usage, unknown_name("command", argv[1], known));
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      return complain(ranks.is_root(), ExitCode::usage, misuse(app, error));
    }
    if (ranks.is_root()) app.exit(error);
    finish_output();
    return ExitCode::done;
  }
  const ExitCode code = run_and_print(action);
  finish_output();
  return code;
}

// Runs the command as one rank. All ranks end with the exit code on which they agree, or else all
// are aborted.
ExitCode run_as_rank(int argc, char** argv) {
  perdura::harness::Ranks ranks(argc, argv);
  const auto of_this_rank = [&](const char* message) {
    if (ranks.size() == 1) return std::string(message);
    return fmt::format("{}: {}", ranks.describe(ranks.rank()), message);
  };
  ExitCode code = ExitCode::failed;
  try {
    return parse_and_run(argc, argv, ranks);
  } catch (const perdura::harness::Interrupted&) {
    code = perdura::harness::complain(ranks.is_root(), ExitCode::failed, "interrupted");
    if (ranks.leave_early()) return code;
  } catch (const perdura::UsageError& error) {
    // The same error usually occurs on all ranks, so the root alone reports it.
    code = perdura::harness::complain(ranks.is_root(), ExitCode::usage, error.what());
    if (ranks.leave_early()) return code;
    perdura::harness::complain(!ranks.is_root(), code, of_this_rank(error.what()));
  } catch (const std::exception& error) {
    code = perdura::harness::complain(true, ExitCode::failed, of_this_rank(error.what()));
    if (ranks.leave_early()) return code;
  }
  ranks.abort(static_cast<int>(code));
}

}  // namespace

int main(int argc, char** argv) {
  // Without the signal, exceeding the file size limit (ulimit -f) is reported like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return static_cast<int>(run_as_rank(argc, argv));
  } catch (const perdura::UsageError& error) {
    // These processes do not know of each other, and each takes itself for the first. So the one
    // that Slurm numbers 0 reports the error.
    const char* task = std::getenv("SLURM_PROCID");
    const bool first = task == nullptr || std::string_view(task) == "0";
    return static_cast<int>(perdura::harness::complain(first, ExitCode::usage, error.what()));
  }
}
