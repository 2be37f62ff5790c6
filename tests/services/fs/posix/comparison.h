// A process on a session and the kernel, side by side: each system call goes to both.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "tests/services/fs/posix/sides.h"

namespace perdura::fs::test {

// Times that an operation changed, or that a user has given, of each file.
class Times {
 public:
  struct Change {
    bool modified = false;
    bool changed = false;
    bool size = false;
  };
  // Since the last call.
  std::map<std::string, Change> changes(const Picture& picture);

 private:
  std::map<std::uint64_t, Seen> last_;
};

class Comparison {
 public:
  // With an empty file system whose operations never wait. Its root belongs to user 0, with the
  // mode 0755, and is of kBegin.
  static constexpr Timestamp kBegin{2'000'000'000, 0};
  Comparison(const std::string& directory, Session& session);

  // Each returns what differs.
  std::string apply(const Operation& operation);
  std::string apply_random(std::uint32_t seed, const Drawn& drawn, std::int64_t operations);
  std::string compare_data();
  // The last call.
  void leave() { process_.exit(); }

  // How often each kind of system call had which error, or 0.
  const std::map<std::pair<Operation::Kind, int>, int>& outcomes() const { return outcomes_; }

 private:
  // `with_same_size`: whether the times of files that keep their sizes are compared.
  std::string compare_pictures(bool with_same_size);

  ProcessSide process_;
  KernelSide kernel_;
  Times process_times_;
  Times kernel_times_;
  Known known_;
  Timestamp begun_{};  // the last operation, by the kernel's clock
  std::map<std::pair<Operation::Kind, int>, int> outcomes_;
};

// Empty directories in which comparisons may be made.
class Ground {
 public:
  Ground();
  // Why none can be made; empty if they can.
  const std::string& why_not() const { return why_not_; }
  // What may be drawn there.
  Drawn drawn(bool allocation) const;
  // Calls it in a thread, which may have another root, with a new directory.
  void in_directory(const std::function<void(const std::string&)>& compare);

 private:
  std::filesystem::path new_directory();

  std::filesystem::path parent_;
  std::string why_not_;
  bool is_tmpfs_ = false;
  int directories_ = 0;
};

int kernel_setting(const std::string& name);  // of /proc/sys/fs
// The rules of this kernel, where kernels differ.
Process::Options options_of_kernel();
// What this kernel refuses in sticky directories, and a process does not: Drawn::never_with_sticky.
std::uint32_t never_with_sticky();

}  // namespace perdura::fs::test
