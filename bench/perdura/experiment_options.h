// What `perdura run` and `perdura plan` have in common: the arguments that say what is to be run,
// and the drivers that run it.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <vector>

#include "harness/run/prepare.h"

namespace perdura::harness {

// For CLI::Option::check: nothing given is not the same as "".
std::string is_not_empty(const std::string& text);

class ExperimentOptions {
 public:
  // The argument that names the experiment is returned, so that the command can say whether it must
  // be there.
  CLI::Option* add_to(CLI::App& command);
  // All the others.
  const std::vector<CLI::Option*>& options() const { return options_; }
  // Throws UsageError if a setting is none.
  ExperimentRequest request() const;

 private:
  std::string experiment_;
  std::string platform_;
  std::string profile_;
  std::string seed_;
  std::string site_;
  std::vector<std::string> settings_;
  std::vector<CLI::Option*> options_;
};

std::span<const Driver* const> all_drivers();

}  // namespace perdura::harness
