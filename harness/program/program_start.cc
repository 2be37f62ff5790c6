#include "harness/program/program_start.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "harness/program/exit_code.h"
#include "platform/base/limits.h"

namespace perdura::harness {
namespace {

void open_standard_descriptors() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    // The lowest free number is this one, since those below are open.
    const int flags = descriptor == STDIN_FILENO ? O_RDONLY : O_WRONLY;
    if (::open("/dev/null", flags) != descriptor) std::_Exit(static_cast<int>(ExitCode::failed));
  }
}

// The limits, read while there is still memory to read them.
std::array<char, 512> memory_line{};

std::terminate_handler usual_handler = nullptr;

void end_without_memory() {
  bool out_of_memory = false;
  if (const std::exception_ptr current = std::current_exception()) {
    try {
      std::rethrow_exception(current);
    } catch (const std::bad_alloc&) {
      out_of_memory = true;
    } catch (...) {
    }
  }
  if (!out_of_memory) usual_handler();
  [[maybe_unused]] const ssize_t written =
      ::write(STDERR_FILENO, memory_line.data(), std::strlen(memory_line.data()));
  std::_Exit(static_cast<int>(ExitCode::failed));
}

}  // namespace

void start_program() {
  open_standard_descriptors();
  raise_limit_of_files();
  std::signal(SIGXFSZ, SIG_IGN);
  std::snprintf(memory_line.data(), memory_line.size(), "perdura: %s\n", out_of_memory().c_str());
  usual_handler = std::set_terminate(end_without_memory);
}

std::string problem_text(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return out_of_memory();
  return error.what();
}

}  // namespace perdura::harness
