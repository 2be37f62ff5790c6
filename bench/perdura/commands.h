// The commands of the program `perdura`. Each adds itself to the command line and does its work if
// it was chosen. Usage errors are thrown as UsageError; main.cc reports them in one line with exit
// code 2.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "harness/config/locations.h"
#include "harness/run/ranks.h"
#include "harness/run/sweep.h"

namespace perdura::harness {

struct CommandContext {
  Locations locations = Locations::standard();
  Ranks& ranks;
  std::string command_line;  // for the manifest
};

// The work of the chosen command, which main.cc calls after parsing; empty until a command was
// chosen.
using Action = std::function<ExitCode()>;

void add_guarantees(CLI::App& app, CommandContext& context, Action& action);
void add_list(CLI::App& app, CommandContext& context, Action& action);
void add_plan(CLI::App& app, CommandContext& context, Action& action);
void add_run(CLI::App& app, CommandContext& context, Action& action);
// report, claims and compare
void add_reading(CLI::App& app, CommandContext& context, Action& action);
void add_probe(CLI::App& app, CommandContext& context, Action& action);
void add_advise(CLI::App& app, CommandContext& context, Action& action);
void add_crash(CLI::App& app, CommandContext& context, Action& action);
void add_doctor(CLI::App& app, CommandContext& context, Action& action);
void add_fs(CLI::App& app, CommandContext& context, Action& action);
void add_history(CLI::App& app, CommandContext& context, Action& action);
void add_litmus(CLI::App& app, CommandContext& context, Action& action);
void add_completion(CLI::App& app, CommandContext& context, Action& action);
void add_mcas(CLI::App& app, CommandContext& context, Action& action);
void add_mojim(CLI::App& app, CommandContext& context, Action& action);
void add_soak(CLI::App& app, CommandContext& context, Action& action);

}  // namespace perdura::harness
