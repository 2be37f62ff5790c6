// The commands of the program `perdura`. Each adds itself to the program, with the function that
// runs it. Usage errors are thrown as UsageError; main.cc reports them in one line with exit code
// 2.
#pragma once

#include <string>

#include "harness/config/locations.h"
#include "harness/program/command.h"
#include "harness/run/ranks.h"
#include "harness/run/sweep.h"

namespace perdura::program {

struct CommandContext {
  harness::Locations locations = harness::Locations::standard();
  harness::Ranks& ranks;
  std::string command_line;  // for the manifest
};

void add_guarantees(harness::Command& program, CommandContext& context);
void add_list(harness::Command& program, CommandContext& context);
void add_plan(harness::Command& program, CommandContext& context);
void add_run(harness::Command& program, CommandContext& context);
// Adds report, claims and compare.
void add_reading(harness::Command& program, CommandContext& context);
void add_probe(harness::Command& program, CommandContext& context);
void add_advise(harness::Command& program, CommandContext& context);
void add_crash(harness::Command& program, CommandContext& context);
void add_doctor(harness::Command& program, CommandContext& context);
void add_fs(harness::Command& program, CommandContext& context);
void add_history(harness::Command& program, CommandContext& context);
void add_litmus(harness::Command& program, CommandContext& context);
void add_completion(harness::Command& program, CommandContext& context);
void add_mcas(harness::Command& program, CommandContext& context);
void add_mojim(harness::Command& program, CommandContext& context);
void add_trace(harness::Command& program, CommandContext& context);
void add_soak(harness::Command& program, CommandContext& context);

}  // namespace perdura::program
