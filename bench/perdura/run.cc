// perdura run: runs an experiment and writes a result folder.
#include <chrono>
#include <cmath>
#include <memory>

#include "bench/perdura/commands.h"
#include "bench/perdura/experiment_options.h"
#include "bench/perdura/finite_number.h"
#include "bench/perdura/responder_properties.h"
#include "systems/persistence/detection.h"

namespace perdura::harness {
namespace {

struct RunArguments {
  ExperimentOptions experiment;
  std::string out;
  std::string interrupted;
  double heartbeat = 10;  // seconds
  bool quiet = false;
};

ExitCode run(const RunArguments& arguments, CommandContext& context) {
  const RunRequest request{
      .experiment = arguments.experiment.request(),
      .out = arguments.out,
      .interrupted = arguments.interrupted,
      .command_line = context.command_line,
      .responder = responder_properties(persistence::detect()),
      .quiet = arguments.quiet,
      .heartbeat = std::chrono::milliseconds(std::llround(arguments.heartbeat * 1000))};
  return run_experiment(request, context.locations, all_drivers(), context.ranks);
}

}  // namespace

void add_run(CLI::App& app, CommandContext& context, Action& action) {
  const auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand(
      "run", "Runs an experiment; under mpirun, ranks share the points (sim) or are nodes (shm)");
  CLI::Option* experiment = arguments->experiment.add_to(*command);
  CLI::Option* out = command->add_option("--out", arguments->out,
                                         "Folder for the results; must not exist or be empty "
                                         "(default: out/EXPERIMENT-PLATFORM-N)");
  CLI::Option* interrupted =
      command->add_option("--continue", arguments->interrupted,
                          "Folder of a sweep that was interrupted or killed: runs the points that "
                          "are missing, with the settings that it was begun with");
  interrupted->excludes(experiment)->excludes(out);
  for (CLI::Option* option : arguments->experiment.options()) interrupted->excludes(option);
  command
      ->add_option("--heartbeat", arguments->heartbeat,
                   "Seconds after which a rank that is silent ends the run; 0: never (default: 10)")
      ->check(finite_number(0, 86400));
  command->add_flag("--quiet", arguments->quiet, "No progress on stderr");
  command->callback([arguments, experiment, interrupted, &context, &action] {
    if (experiment->empty() && interrupted->empty()) throw CLI::RequiredError("experiment");
    action = [arguments, &context] { return run(*arguments, context); };
  });
}

}  // namespace perdura::harness
