#include "harness/program/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <system_error>
#include <vector>

#include "harness/program/build_info.h"
#include "harness/text/printable.h"
#include "harness/text/suggestion.h"
#include "platform/base/error.h"

namespace perdura::harness {
namespace {

[[noreturn]] void refuse_output(int problem) {
  throw PlatformError(
      fmt::format("standard output: cannot be written: {}", std::strerror(problem)));
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
      const auto meant = nearest(argument.substr(0, argument.find('=')), known);
      if (!meant.empty()) return fmt::format("; did you mean {}?", meant);
    }
  }
  return "";
}

// The command of a command that was given where another one is required; empty if none was.
std::string unknown_subcommand(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  if (commands.empty()) return "";
  const CLI::App& command = *commands.front();
  std::vector<std::string> known;
  for (const CLI::App* each : command.get_subcommands({})) known.push_back(each->get_name());
  const std::vector<std::string> rest = command.remaining();
  if (known.empty() || rest.empty() || rest.front().starts_with('-')) return "";
  return unknown_name(command.get_name() + " command", rest.front(), known);
}

}  // namespace

// Nothing can be done if it cannot be written.
ExitCode complain(bool visible, ExitCode code, std::string_view message) {
  const std::string line = fmt::format("perdura: {}\n", printable(message));
  if (visible) std::fputs(line.c_str(), stderr);
  return code;
}

std::string version_of(std::string_view program) {
  const BuildInfo& build = build_info();
  return fmt::format("{} {} (revision {}{})", program, build.version,
                     build.git_revision.substr(0, 12), build.git_dirty ? ", with changes" : "");
}

std::string misuse(const CLI::App& app, const CLI::ParseError& error) {
  std::string what = error.what();
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError)) {
    if (const std::string unknown = unknown_subcommand(app); !unknown.empty()) return unknown;
  }
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    const std::vector<std::string> rest = app.remaining(true);
    what = fmt::format("The following argument{} not expected: {}",
                       rest.size() == 1 ? " was" : "s were", fmt::join(rest, " "));
  }
  const auto commands = app.get_subcommands();
  return fmt::format("{}{} (see '{} {}--help')", what, meant_option(app), app.get_name(),
                     commands.empty() ? "" : commands.front()->get_name() + " ");
}

void finish_output() {
  std::cout.flush();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) refuse_output(errno);
}

ExitCode run_and_print(const std::function<ExitCode()>& work) {
  try {
    return work();
  } catch (const std::system_error& problem) {
    if (std::ferror(stdout) != 0) refuse_output(problem.code().value());
    throw;
  }
}

}  // namespace perdura::harness
