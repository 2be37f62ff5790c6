// perdura run: runs an experiment and writes a result folder.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <memory>

#include "bench/kv/kv_driver.h"
#include "bench/log/log_driver.h"
#include "bench/perdura/commands.h"
#include "systems/kv.h"

namespace perdura::harness {
namespace {

struct RunArguments {
  std::string experiment;
  std::string platform;
  std::string profile;
  std::string seed;
  std::vector<std::string> settings;
  std::string out;
  double heartbeat = 10;  // seconds
  bool quiet = false;
};

ExitCode run(const RunArguments& arguments, CommandContext& context) {
  RunRequest request{
      .experiment = arguments.experiment,
      .overrides = {},
      .out = arguments.out,
      .command_line = context.command_line,
      .quiet = arguments.quiet,
      .heartbeat = std::chrono::milliseconds(std::llround(arguments.heartbeat * 1000))};
  const auto quoted = [](const std::string& text) { return fmt::format("\"{}\"", text); };
  const auto override_with = [&](std::string_view key, const std::string& given,
                                 const std::string& value) {
    if (given.empty()) return;
    request.overrides.push_back({std::string(key), value, fmt::format("--{} {}", key, given)});
  };
  override_with("platform", arguments.platform, quoted(arguments.platform));
  override_with("profile", arguments.profile, quoted(arguments.profile));
  override_with("seed", arguments.seed, arguments.seed);
  for (const std::string& setting : arguments.settings) {
    request.overrides.push_back(parse_override(setting));
  }
  const bench::KvDriver kv(systems::kv_systems());
  const bench::LogDriver log;
  const std::array<const Driver*, 2> drivers{&kv, &log};
  return run_experiment(request, context.locations, drivers, context.ranks);
}

}  // namespace

void add_run(CLI::App& app, CommandContext& context, Action& action) {
  const auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand(
      "run", "Runs an experiment; under mpirun, ranks share the points (sim) or are nodes (shm)");
  command->add_option("experiment", arguments->experiment, "Name or path of an experiment")
      ->required();
  command->add_option("--platform", arguments->platform, "Platform instead of the experiment's");
  command->add_option("--profile", arguments->profile,
                      "Testbed for platform sim instead of the experiment's");
  command->add_option("--seed", arguments->seed, "Seed instead of the experiment's");
  command
      ->add_option("--set", arguments->settings,
                   "SECTION.KEY=VALUE, overrides one value of the experiment; VALUE as in TOML")
      ->allow_extra_args(false);
  command->add_option("--out", arguments->out,
                      "Folder for the results; must not exist or be empty "
                      "(default: out/EXPERIMENT-PLATFORM-N)");
  command
      ->add_option("--heartbeat", arguments->heartbeat,
                   "Seconds after which a rank that is silent ends the run; 0: never (default: 10)")
      ->check(CLI::Range(0.0, 86400.0));
  command->add_flag("--quiet", arguments->quiet, "No progress on stderr");
  command->callback([arguments, &context, &action] {
    action = [arguments, &context] { return run(*arguments, context); };
  });
}

}  // namespace perdura::harness
