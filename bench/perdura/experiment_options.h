// What `perdura run` and `perdura plan` have in common: the arguments that say what is to be run,
// and the drivers that run it.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <vector>

#include "harness/run/prepare.h"

namespace perdura::harness {

// A check for CLI::Option::check that rejects "", which is different from an absent option.
std::string is_not_empty(const std::string& text);

class ExperimentOptions {
 public:
  // Returns the argument that names the experiment, so that the command can make it required or
  // optional.
  CLI::Option* add_to(CLI::App& command);
  // All options apart from that argument.
  const std::vector<CLI::Option*>& options() const { return options_; }
  // Throws UsageError if a --set argument is malformed.
  ExperimentRequest request() const;

 private:
  std::string experiment_;
  std::string platform_;
  std::string profile_;
  std::string seed_;
  std::string path_;
  std::string site_;
  std::vector<std::string> settings_;
  std::vector<CLI::Option*> options_;
};

std::span<const Driver* const> all_drivers();

}  // namespace perdura::harness
