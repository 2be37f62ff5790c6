#include "harness/program/command_line.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <system_error>

#include "harness/program/build_info.h"
#include "harness/text/printable.h"
#include "platform/base/error.h"

namespace perdura::harness {
namespace {

[[noreturn]] void refuse_output(int problem) {
  // The descriptor was closed before the program began (program_start.cc).
  if (problem == EBADF) throw PlatformError("standard output: cannot be written: it is closed");
  throw PlatformError(
      fmt::format("standard output: cannot be written: {}", std::strerror(problem)));
}

}  // namespace

// If the line itself cannot be written, nothing can be done.
ExitCode complain(bool visible, ExitCode code, std::string_view message) {
  const std::string line = fmt::format("perdura: {}\n", printable(message));
  if (visible) std::fputs(line.c_str(), stderr);
  return code;
}

std::string version_of(std::string_view program) {
  const BuildInfo& build = build_info();
  return fmt::format("{} {} (revision {}{})", program, build.version,
                     build.git_revision.substr(0, 12), build.git_dirty ? ", with changes" : "");
}

void finish_output() {
  std::cout.flush();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) refuse_output(errno);
}

ExitCode run_and_print(const std::function<ExitCode()>& work) {
  try {
    return work();
  } catch (const std::system_error& problem) {
    if (std::ferror(stdout) != 0) refuse_output(problem.code().value());
    throw;
  }
}

}  // namespace perdura::harness
