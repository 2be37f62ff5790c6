// The arguments of `perdura crash`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/perdura/commands.h"
#include "bench/perdura/configuration_options.h"

namespace perdura::harness {

struct CrashArguments {
  std::string target;
  ConfigurationOptions configuration;
  bool exhaustive = false;
  std::uint64_t samples = 0;  // 0: the target's default
  std::uint64_t seed = 1;
  bool steps = false;
  std::vector<std::string> parameters;  // NAME=VALUE, of a system
  std::optional<std::uint64_t> from;    // moment of a system's history
  std::optional<std::uint64_t> to;
  std::string persistence = "paper";     // of a system's puts, or "correct"
  std::optional<std::string> schedule;   // of a system's history; absent: all
  std::optional<std::uint64_t> failing;  // of a system's servers, at once; absent: all
  std::optional<std::string> failure;    // of a system: absent: of power
  bool again = false;                    // a system's servers fail a second time
  std::optional<std::string> profile;    // of a system: default erda-connectx3
  bool as_json = false;
  std::optional<std::string> replay;  // the file of a finding; then nothing else is given
};

bool is_system(const std::string& name);
// Explores a system. Returns `done` if what it acknowledges is durable on all persistence models.
ExitCode crash_system(const CrashArguments& arguments, const CommandContext& context);

// Repeats what `perdura soak` found. Returns `failed` if it is found again.
ExitCode replay_finding(const std::string& file, const CommandContext& context);

}  // namespace perdura::harness
