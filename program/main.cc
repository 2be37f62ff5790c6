// perdura: the command line of the suite. Exit codes: 0 done, 1 the work failed, 2 wrong usage.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "harness/program/command.h"
#include "harness/program/command_line.h"
#include "harness/program/program_start.h"
#include "harness/run/interrupt.h"
#include "platform/base/error.h"
#include "platform/base/limits.h"
#include "platform/base/suggestion.h"
#include "program/commands.h"
#include "services/verdict.h"

namespace harness = perdura::harness;

namespace {

using harness::ExitCode;

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

ExitCode parse_and_run(int argc, char** argv, harness::Ranks& ranks) {
  using namespace perdura::program;
  CommandContext context{.ranks = ranks, .command_line = joined(argc, argv)};
  harness::Program program("Benchmark and characterization suite for persistent memory behind RDMA",
                           "perdura");
  program.version(harness::version_of("perdura"));
  program.require_subcommand();
  program.footer(
      "Experiments, profiles, workloads and sites are looked up in $PERDURA_HOME, in the current "
      "folder, and in what was installed with perdura or is in its source tree.");
  add_list(program, context);
  add_plan(program, context);
  add_run(program, context);
  add_probe(program, context);
  add_reading(program, context);
  add_doctor(program, context);
  add_advise(program, context);
  add_crash(program, context);
  add_guarantees(program, context);
  add_history(program, context);
  add_soak(program, context);
  add_litmus(program, context);
  add_mcas(program, context);
  add_mojim(program, context);
  add_fs(program, context);
  add_trace(program, context);
  add_completion(program, context);
  if (argc > 1 && argv[1][0] != '-') {
    std::vector<std::string> known;
    for (const auto& command : program.subcommands()) known.push_back(command->name());
    if (std::find(known.begin(), known.end(), argv[1]) == known.end()) {
      return complain(ranks.is_root(), ExitCode::usage,
                      perdura::unknown_name("command", argv[1], known));
    }
  }
  const ExitCode code = program.run(argc, argv, ranks.is_root());
  harness::finish_output();
  return code;
}

// Runs the command as one rank. All ranks end with the exit code that they agree on; otherwise all
// are aborted.
ExitCode run_as_rank(int argc, char** argv) {
  harness::Ranks ranks(argc, argv);
  const auto of_this_rank = [&](const char* message) {
    if (ranks.size() == 1) return std::string(message);
    return fmt::format("{}: {}", ranks.describe(ranks.rank()), message);
  };
  ExitCode code = ExitCode::failed;
  try {
    return parse_and_run(argc, argv, ranks);
  } catch (const harness::Interrupted&) {
    code = harness::complain(ranks.is_root(), ExitCode::failed, "interrupted");
    if (ranks.leave_early()) return code;
  } catch (const perdura::UsageError& error) {
    // The same error usually occurs on all ranks, so the root alone reports it.
    code = harness::complain(ranks.is_root(), ExitCode::usage, error.what());
    if (ranks.leave_early()) return code;
    harness::complain(!ranks.is_root(), code, of_this_rank(error.what()));
  } catch (const perdura::services::Undecided& error) {
    code = harness::complain(ranks.is_root(), ExitCode::undecided, error.what());
    if (ranks.leave_early()) return code;
  } catch (const std::exception& error) {
    code = harness::complain(true, ExitCode::failed,
                             of_this_rank(perdura::problem_text(error).c_str()));
    if (ranks.leave_early()) return code;
  }
  ranks.abort(static_cast<int>(code));
}

}  // namespace

int main(int argc, char** argv) {
  harness::start_program();
  try {
    return static_cast<int>(run_as_rank(argc, argv));
  } catch (const perdura::UsageError& error) {
    // These processes cannot find each other, and each takes itself for the first. The one that
    // Slurm numbers 0 reports the error.
    const char* task = std::getenv("SLURM_PROCID");
    const bool first = task == nullptr || std::string_view(task) == "0";
    return static_cast<int>(harness::complain(first, ExitCode::usage, error.what()));
  }
}
