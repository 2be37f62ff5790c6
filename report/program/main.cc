// A command that reads result folders, as a program of its own: perdura-report and the like. Exit
// codes: 0 done, 1 the work failed, 2 wrong usage.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <string>

#include "harness/program/command.h"
#include "harness/program/command_line.h"
#include "harness/program/program_start.h"
#include "platform/base/error.h"
#include "platform/base/limits.h"
#include "report/program/commands.h"

namespace {

using namespace perdura::harness;

ExitCode parse_and_run(int argc, char** argv) {
  const auto commands = perdura::report::commands();
  const auto command = std::find_if(commands.begin(), commands.end(),
                                    [](const auto& each) { return each.name == PERDURA_COMMAND; });
  const std::string name = fmt::format("perdura-{}", command->name);
  Program program(std::string(command->what), name);
  program.version(version_of(name));
  const perdura::report::Work work = command->declare(program);
  program.does([&work] {
    const DataFolders data = DataFolders::standard();
    return work({data, [](std::size_t) { return std::make_unique<WorkWatch>(); }, [] {}});
  });
  const ExitCode code = program.run(argc, argv);
  finish_output();
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  start_program();
  ExitCode code = ExitCode::failed;
  try {
    code = parse_and_run(argc, argv);
  } catch (const perdura::UsageError& error) {
    code = complain(true, ExitCode::usage, error.what());
  } catch (const std::exception& error) {
    code = complain(true, ExitCode::failed, perdura::problem_text(error));
  }
  return static_cast<int>(code);
}
