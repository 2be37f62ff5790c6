// perdura probe --path: where the files below a directory are, and how many translations a NIC needs
// for them (docs/probe.md).
#pragma once

#include <string>

#include "program/commands.h"
#include "program/translation_options.h"

namespace perdura::program {

struct PathProbe {
  std::string path;
  std::string trace;  // may be empty, as all that follow
  std::string profile;
  std::string device;
  std::string out;
  TranslationOptions translation;
  bool as_json = false;
};

harness::ExitCode probe_path(const PathProbe& probe, const CommandContext& context);

}  // namespace perdura::program
