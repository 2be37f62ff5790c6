// Shared by the programs of this tree: the format of error messages, the version, and the check
// that output was written.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "harness/program/exit_code.h"

namespace perdura::harness {

// Writes one line to stderr, if `visible`: what went wrong, where, what to do. Returns `code`.
ExitCode complain(bool visible, ExitCode code, std::string_view message);

// "perdura 0.1.0 (revision 075bac4d1e2f, with changes)"
std::string version_of(std::string_view program);

// Flushes the output. Throws PlatformError if it cannot be written, for example because a disk is
// full.
void finish_output();

// Runs `work`. Throws PlatformError in place of its std::system_error if writing to standard output
// has failed.
ExitCode run_and_print(const std::function<ExitCode()>& work);

}  // namespace perdura::harness
