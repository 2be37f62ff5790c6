// A program that is started on this host, with all processes that it starts. They form a process
// group, which the destructor kills.
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
  // Makes the arguments, beginning with the program, from the descriptors at which the program
  // writes (`results`) and reads (`answers`). Its output goes to files in the given folder.
  using Arguments = std::function<std::vector<std::string>(int results, int answers)>;
  // Throws PlatformError if it cannot be started.
  Program(const Arguments& arguments, const std::filesystem::path& folder);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Fills `into` with bytes from the program. Returns false if the program ends before `into` is
  // full, or if this process is interrupted.
  bool read(std::span<std::byte> into);
  void answer(char what);
  // The CPU time of all its processes so far, split by whether their command lines contain `of`.
  struct CpuTime {
    Picoseconds with{};
    Picoseconds without{};
  };
  CpuTime cpu_time(std::string_view of) const;
  // Waits until it has ended. Returns its exit code, or 128 plus the number of the signal that
  // ended it; less than 0 if this process is interrupted.
  int wait();
  // Its standard output, and the last line of its standard error.
  std::string output() const;
  std::string complaint() const;

 private:
  std::filesystem::path folder_;
  pid_t process_ = -1;
  bool ended_ = false;
  int exit_code_ = -1;
  int results_ = -1;
  int answers_ = -1;
};

}  // namespace perdura::bench::lmdb
