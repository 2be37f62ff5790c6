#include "harness/program/program_start.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "harness/program/exit_code.h"
#include "platform/base/limits.h"

namespace perdura::harness {
namespace {

// The allocator takes memory from the operating system in pieces of 32 MiB. A library that gets
// none while it is being loaded calls abort(), before main() and silently, so one piece is tried
// before the libraries are initialized. No function that a sanitizer replaces may be called at that
// time.
__attribute__((no_sanitize("address", "thread", "undefined"))) void try_first_piece() {
  constexpr unsigned long kPiece = 32UL << 20;
  const long piece = ::syscall(SYS_mmap, nullptr, kPiece, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
  if (piece != -1) {
    ::syscall(SYS_munmap, piece, kPiece);
    return;
  }
  static constexpr char kLine[] =
      "perdura: out of memory: not even 32 MiB can be had, without which no program begins; raise "
      "ulimit -d (data) or ulimit -v (address space)\n";
  ::syscall(SYS_write, STDERR_FILENO, kLine, sizeof kLine - 1);
  ::syscall(SYS_exit_group, 1);
}

// From start_program() on it names the limits, read while there is still memory to read them.
std::array<char, 512> memory_line{
    "perdura: out of memory before the program began; raise ulimit -d (data) or ulimit -v (address "
    "space)\n"};

std::terminate_handler usual_handler = nullptr;

thread_local constinit bool is_memory_refused = false;

[[noreturn]] void refuse_memory() {
  is_memory_refused = true;
  throw std::bad_alloc();
}

void end_without_memory() {
  // An exception that leaves a noexcept function is not caught, and its type cannot be asked for.
  bool out_of_memory = is_memory_refused && std::uncaught_exceptions() > 0;
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

// Objects that exist before main() take memory, too.
__attribute__((no_sanitize("address", "thread", "undefined"))) void begin() {
  try_first_piece();
  usual_handler = std::set_terminate(end_without_memory);
  std::set_new_handler(refuse_memory);
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const first_of_all)() = begin;

// A file that is opened later must not get the number of a closed standard descriptor, and be
// written what is meant for a terminal. In place of standard output is something that can only be
// read, so that what is written there is refused and not lost. Standard error has no place where
// one could be told that it is lost.
void open_standard_descriptors() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    // The lowest free number is this one, since those below are open.
    const int flags = descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", flags) != descriptor) std::_Exit(static_cast<int>(ExitCode::failed));
  }
}

}  // namespace

void start_program() {
  open_standard_descriptors();
  raise_limit_of_files();
  std::signal(SIGXFSZ, SIG_IGN);
  std::snprintf(memory_line.data(), memory_line.size(), "perdura: %s\n", out_of_memory().c_str());
}

}  // namespace perdura::harness
