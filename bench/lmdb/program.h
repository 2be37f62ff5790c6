// A program that is started on this host, with all processes that it starts: they are a process
// group, which is ended with this object.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "platform/base/units.h"

namespace perdura::bench::lmdb {

class Program {
 public:
  // The arguments, the program first, for the descriptors at which the program is listened to and
  // at which it listens. What it prints goes to files in this folder.
  using Arguments = std::function<std::vector<std::string>(int said, int told)>;
  // Throws PlatformError if it cannot be started.
  Program(const Arguments& arguments, const std::filesystem::path& folder);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Fills this with what the program says. False if it has ended before, or if this process is
  // interrupted.
  bool read(std::span<std::byte> into);
  void answer(char what);
  // The CPU time of all its processes so far, separately for those whose command line holds `of`.
  struct CpuTime {
    Picoseconds with{};
    Picoseconds without{};
  };
  CpuTime cpu_time(std::string_view of) const;
  // Waits until it has ended; its exit code, or 128 and the number of the signal that ended it.
  // Less than 0 if this process is interrupted.
  int wait();
  // What it has printed, and the last line of what it has said on standard error.
  std::string output() const;
  std::string complaint() const;

 private:
  std::filesystem::path folder_;
  pid_t process_ = -1;
  bool ended_ = false;
  int exit_code_ = -1;
  int said_ = -1;
  int told_ = -1;
};

}  // namespace perdura::bench::lmdb
