// A file system that is mounted by a process of its own, for tests.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "platform/base/units.h"
#include "tests/support/temporary_directory.h"

namespace perdura::test {

// Why file systems cannot be mounted here, as a sentence; empty if they can. They need /dev/fuse
// and root, whose users are others in turn.
std::string why_no_mounts();

// The systems that are tested: the model, and those of the table that persist.
std::vector<std::string> mounted_systems();
bool is_persistent(const std::string& system);

// All that is in a file.
std::string read_file(const std::filesystem::path& path);

// A place, and a directory on which it is mounted.
class Mounted {
 public:
  // Makes the file system and mounts it.
  explicit Mounted(std::string system, std::string options = "", Bytes size = 256 * MiB);
  ~Mounted();
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;

  const std::filesystem::path& path() const { return directory_; }
  std::filesystem::path place() const { return folder_.path() / "place"; }

  void mount();
  void set_options(std::string options) { options_ = std::move(options); }
  // Where the next mount() records the accesses of programs.
  void set_trace(std::string trace) { trace_ = std::move(trace); }
  int unmount();  // the exit code of the process that served
  void kill();    // the process that serves, in the middle of whatever it does; and unmounts
  pid_t process() const { return process_; }

 private:
  int await_process();

  std::string system_;
  std::string options_;
  std::string trace_;
  TemporaryDirectory folder_;
  std::filesystem::path directory_;
  pid_t process_ = 0;
};

// ext4 on a loop device over tmpfs, or a directory of tmpfs where there are no loop devices.
class Reference {
 public:
  Reference();
  ~Reference();
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;
  const std::filesystem::path& path() const { return directory_; }
  bool is_ext4() const { return ext4_; }

 private:
  TemporaryDirectory folder_;
  std::filesystem::path directory_;
  bool ext4_ = false;
};

}  // namespace perdura::test
