// perdura: the command line of the suite. Exit codes: 0 done, 1 the work failed, 2 wrong usage.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "bench/perdura/commands.h"
#include "harness/results/build_info.h"
#include "harness/run/interrupt.h"
#include "platform/error.h"

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

// One line: what went wrong, where, what to do.
ExitCode complain(bool visible, ExitCode code, std::string_view message) {
  if (visible) fmt::print(stderr, "perdura: {}\n", message);
  return code;
}

ExitCode parse_and_run(int argc, char** argv, perdura::harness::Ranks& ranks) {
  using namespace perdura::harness;
  CommandContext context{.ranks = ranks, .command_line = joined(argc, argv)};
  CLI::App app("Benchmark and characterization suite for persistent memory behind RDMA", "perdura");
  app.set_version_flag("--version", fmt::format("perdura {}", build_info().version));
  app.require_subcommand(1);
  app.footer(
      "Experiments, profiles and workloads are looked up in $PERDURA_HOME, in the current "
      "folder and in the source tree.");
  Action action;
  add_list(app, context, action);
  add_plan(app, context, action);
  add_run(app, context, action);
  add_probe(app, context, action);
  add_report(app, context, action);
  add_claims(app, context, action);
  add_compare(app, context, action);
  add_doctor(app, context, action);
  add_advise(app, context, action);
  add_crash(app, context, action);
  add_guarantees(app, context, action);
  if (argc > 1 && argv[1][0] != '-') {
    std::vector<std::string> known;
    for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
    if (std::find(known.begin(), known.end(), argv[1]) == known.end()) {
      return complain(
          ranks.is_root(), ExitCode::usage,
          fmt::format("unknown command '{}'; known are: {}", argv[1], fmt::join(known, ", ")));
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      return complain(ranks.is_root(), ExitCode::usage,
                      fmt::format("{} (see 'perdura --help')", error.what()));
    }
    if (ranks.is_root()) app.exit(error);
    return ExitCode::done;
  }
  return action();
}

// Ends as all ranks agree, or ends them all.
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
    code = complain(ranks.is_root(), ExitCode::failed, "interrupted");
    if (ranks.others_end_too()) return code;
  } catch (const perdura::UsageError& error) {
    // What is wrong is usually wrong everywhere, and the root says it.
    code = complain(ranks.is_root(), ExitCode::usage, error.what());
    if (ranks.others_end_too()) return code;
    complain(!ranks.is_root(), code, of_this_rank(error.what()));
  } catch (const std::exception& error) {
    code = complain(true, ExitCode::failed, of_this_rank(error.what()));
    if (ranks.others_end_too()) return code;
  }
  ranks.abort(static_cast<int>(code));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return static_cast<int>(run_as_rank(argc, argv));
  } catch (const perdura::UsageError& error) {
    // Processes that do not see each other: each is the first of its own, so one has to be chosen.
    const char* task = std::getenv("SLURM_PROCID");
    const bool first = task == nullptr || std::string_view(task) == "0";
    return static_cast<int>(complain(first, ExitCode::usage, error.what()));
  }
}
