// What the programs of this tree have in common: how they say what they are, what was wrong, and
// that what they print cannot be written.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "harness/program/exit_code.h"

namespace perdura::harness {

// Writes one line to stderr, if `visible`: what went wrong, where, what to do. Answers `code`.
ExitCode complain(bool visible, ExitCode code, std::string_view message);

// "perdura 0.1.0 (revision 075bac4d1e2f, with changes)"
std::string version_of(std::string_view program);

// Throws PlatformError if what was printed cannot be written, such as for a full disk: it is
// buffered until then.
void finish_output();

// Does the work, and throws PlatformError also if that which is printed meanwhile cannot be.
ExitCode run_and_print(const std::function<ExitCode()>& work);

}  // namespace perdura::harness
