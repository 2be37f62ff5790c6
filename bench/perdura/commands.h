// The commands of the program `perdura`. Each adds itself to the program, with the function that
// runs it. Usage errors are thrown as UsageError; main.cc reports them in one line with exit code
// 2.
#pragma once

#include <string>

#include "harness/config/locations.h"
#include "harness/program/command.h"
#include "harness/run/ranks.h"
#include "harness/run/sweep.h"

namespace perdura::harness {

struct CommandContext {
  Locations locations = Locations::standard();
  Ranks& ranks;
  std::string command_line;  // for the manifest
};

void add_guarantees(Command& program, CommandContext& context);
void add_list(Command& program, CommandContext& context);
void add_plan(Command& program, CommandContext& context);
void add_run(Command& program, CommandContext& context);
// Adds report, claims and compare.
void add_reading(Command& program, CommandContext& context);
void add_probe(Command& program, CommandContext& context);
void add_advise(Command& program, CommandContext& context);
void add_crash(Command& program, CommandContext& context);
void add_doctor(Command& program, CommandContext& context);
void add_fs(Command& program, CommandContext& context);
void add_history(Command& program, CommandContext& context);
void add_litmus(Command& program, CommandContext& context);
void add_completion(Command& program, CommandContext& context);
void add_mcas(Command& program, CommandContext& context);
void add_mojim(Command& program, CommandContext& context);
void add_soak(Command& program, CommandContext& context);

}  // namespace perdura::harness
