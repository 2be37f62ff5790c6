// perdura run: runs an experiment and writes a result folder.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "methods/detection.h"
#include "program/commands.h"
#include "program/experiment_options.h"
#include "program/responder_properties.h"

namespace perdura::program {
namespace {

struct RunArguments {
  ExperimentOptions experiment;
  std::string out;
  std::string interrupted;
  double heartbeat = 10;  // in seconds
  bool cut_back = false;
  bool quiet = false;
};

harness::ExitCode run(const RunArguments& arguments, CommandContext& context) {
  const harness::RunRequest request{
      .experiment = arguments.experiment.request(),
      .out = arguments.out,
      .interrupted = arguments.interrupted,
      .if_damaged = arguments.cut_back ? harness::IfDamaged::cut_back : harness::IfDamaged::refuse,
      .command_line = context.command_line,
      .responder = responder_properties(methods::detect()),
      .quiet = arguments.quiet,
      .heartbeat = std::chrono::milliseconds(std::llround(arguments.heartbeat * 1000))};
  return run_experiment(request, context.locations, all_drivers(), context.ranks);
}

// Less than a tenth of a second is refused, since a busy machine causes such silence, too.
std::string is_silence(const std::string& text) {
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  const bool whole = !text.empty() && *end == '\0';
  if (whole && (seconds == 0 || (seconds >= 0.1 && seconds <= 86400))) return "";
  return fmt::format("'{}' is neither 0 nor a number of seconds from 0.1 to 86400", text);
}

}  // namespace

void add_run(harness::Command& program, CommandContext& context) {
  const auto arguments = std::make_shared<RunArguments>();
  harness::Command& command = program.subcommand(
      "run",
      "Runs an experiment; under mpirun, ranks share the points (sim) or are nodes (shm, verbs)");
  const harness::Option experiment = arguments->experiment.add_to(command);
  const harness::Option out = command.option("-o,--out", arguments->out,
                                             "Folder for the results; must be new or empty "
                                             "(default: out/EXPERIMENT-PLATFORM-N)");
  harness::Option interrupted =
      command
          .option("--continue", arguments->interrupted,
                  "Folder of a sweep that was interrupted or killed: runs the points that "
                  "are missing, with the settings that it was begun with")
          .excludes(experiment)
          .excludes(out);
  command
      .flag("--cut-back", arguments->cut_back,
            "With --continue, if the folder's journal is damaged: goes on from what is whole "
            "before the damage; the damaged file is kept beside it")
      .needs(interrupted);
  for (const harness::Option& option : arguments->experiment.options())
    interrupted.excludes(option);
  command
      .option("--heartbeat", arguments->heartbeat,
              "Seconds of a rank's silence after which the run ends, from 0.1; 0: never "
              "(default: 10)")
      .check(is_silence);
  command.flag("--quiet", arguments->quiet, "No progress on stderr");
  command.require_either(experiment, interrupted);
  command.does([arguments, &context] { return run(*arguments, context); });
}

}  // namespace perdura::program
