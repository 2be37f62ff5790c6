// perdura: the command line of the suite. Exit codes: 0 done, 1 the work failed, 2 wrong usage.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "bench/perdura/commands.h"
#include "bench/perdura/help_formatter.h"
#include "harness/results/build_info.h"
#include "harness/run/interrupt.h"
#include "harness/text/printable.h"
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

// One line: what went wrong, where, what to do. Nothing can be done if it cannot be written.
ExitCode complain(bool visible, ExitCode code, std::string_view message) {
  const std::string line = fmt::format("perdura: {}\n", perdura::harness::printable(message));
  if (visible) std::fputs(line.c_str(), stderr);
  return code;
}

// "perdura 0.1.0 (revision 075bac4d1e2f, with changes)"
std::string version() {
  const perdura::harness::BuildInfo& build = perdura::harness::build_info();
  return fmt::format("perdura {} (revision {}{})", build.version, build.git_revision.substr(0, 12),
                     build.git_dirty ? ", with changes" : "");
}

[[noreturn]] void refuse_output(int problem) {
  throw perdura::PlatformError(
      fmt::format("standard output: cannot be written: {}", std::strerror(problem)));
}

// What was printed is buffered, and a disk may be full.
void finish_output() {
  std::cout.flush();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) refuse_output(errno);
}

// What is printed in the meantime may not have room either.
ExitCode run(const perdura::harness::Action& action) {
  try {
    return action();
  } catch (const std::system_error& problem) {
    if (std::ferror(stdout) != 0) refuse_output(problem.code().value());
    throw;
  }
}

// Of an option that no command has, what it may have been meant to be.
std::string meant_option(const CLI::App& app) {
  std::vector<const CLI::App*> commands{&app};
  for (const CLI::App* command : app.get_subcommands()) commands.push_back(command);
  for (const CLI::App* command : commands) {
    std::vector<std::string> names;
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    const std::vector<std::string_view> known(names.begin(), names.end());
    for (const std::string& argument : command->remaining()) {
      if (!argument.starts_with("--")) continue;
      const auto meant = perdura::harness::nearest(argument.substr(0, argument.find('=')), known);
      if (!meant.empty()) return fmt::format("; did you mean {}?", meant);
    }
  }
  return "";
}

// Of what was not understood, in the order in which it was given, and where help is.
std::string misuse(const CLI::App& app, const CLI::ParseError& error) {
  std::string what = error.what();
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    const std::vector<std::string> rest = app.remaining(true);
    what = fmt::format("The following argument{} not expected: {}",
                       rest.size() == 1 ? " was" : "s were", fmt::join(rest, " "));
  }
  const auto commands = app.get_subcommands();
  return fmt::format("{}{} (see 'perdura {}--help')", what, meant_option(app),
                     commands.empty() ? "" : commands.front()->get_name() + " ");
}

ExitCode parse_and_run(int argc, char** argv, perdura::harness::Ranks& ranks) {
  using namespace perdura::harness;
  CommandContext context{.ranks = ranks, .command_line = joined(argc, argv)};
  CLI::App app("Benchmark and characterization suite for persistent memory behind RDMA", "perdura");
  app.formatter(std::make_shared<perdura::HelpFormatter>());
  app.set_version_flag("--version", version());
  app.require_subcommand(1);
  app.footer(
      "Experiments, profiles, workloads and sites are looked up in $PERDURA_HOME, in the current "
      "folder, and in what was installed with perdura or is in its source tree.");
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
  add_litmus(app, context, action);
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
  const ExitCode code = run(action);
  finish_output();
  return code;
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
    if (ranks.leave_early()) return code;
  } catch (const perdura::UsageError& error) {
    // What is wrong is usually wrong everywhere, and the root says it.
    code = complain(ranks.is_root(), ExitCode::usage, error.what());
    if (ranks.leave_early()) return code;
    complain(!ranks.is_root(), code, of_this_rank(error.what()));
  } catch (const std::exception& error) {
    code = complain(true, ExitCode::failed, of_this_rank(error.what()));
    if (ranks.leave_early()) return code;
  }
  ranks.abort(static_cast<int>(code));
}

}  // namespace

int main(int argc, char** argv) {
  // A limit of a file's size (ulimit -f) is reported like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return static_cast<int>(run_as_rank(argc, argv));
  } catch (const perdura::UsageError& error) {
    // Processes that do not see each other: each is the first of its own, so one has to be chosen.
    const char* task = std::getenv("SLURM_PROCID");
    const bool first = task == nullptr || std::string_view(task) == "0";
    return static_cast<int>(complain(first, ExitCode::usage, error.what()));
  }
}
