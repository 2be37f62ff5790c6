// Shared by `perdura run` and `perdura plan`: the arguments that select what to run, and the
// drivers that run it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/program/command.h"
#include "harness/run/prepare.h"

namespace perdura::program {

class ExperimentOptions {
 public:
  // Adds the options. Returns the argument that names the experiment, so that the command can make
  // it required or optional.
  harness::Option add_to(harness::Command& command);
  // All options apart from that argument.
  const std::vector<harness::Option>& options() const { return options_; }
  // Throws UsageError if a --set argument is malformed.
  harness::ExperimentRequest request() const;

 private:
  std::string experiment_;
  std::string platform_;
  std::string profile_;
  std::string seed_;
  std::string path_;
  std::string site_;
  std::vector<std::string> settings_;
  std::vector<harness::Option> options_;
};

std::span<const harness::Driver* const> all_drivers();

}  // namespace perdura::program
