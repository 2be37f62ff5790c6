// The two file systems: that of the kernel, and a process on a model.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "services/fs/model/model_file_system.h"
#include "tests/services/fs/posix/operation.h"

namespace perdura::fs::test {

// A directory as the root, on a thread of its own with a root, a current directory and credentials
// of its own. The process must be privileged.
class KernelSide final : public Side {
 public:
  // Of this thread, from now on.
  explicit KernelSide(const std::string& directory);
  ~KernelSide() override;
  Outcome apply(const Operation& operation) override;
  Picture picture() override;
  bool is_lost() override;
  std::vector<Extent> data_of(const std::string& path) override;
  std::string bytes_of(const std::string& path, Bytes offset, Bytes length) override;

 private:
  void become(std::size_t user);
  Outcome open(const Operation& operation);
  Outcome list(const std::string& path);
  Outcome get_attribute(const Operation& operation);

  std::size_t user_ = 0;
  std::array<int, kSlots> slots_;
};

class ProcessSide final : public Side {
 public:
  ProcessSide(Session& session, Process::Options options);
  Outcome apply(const Operation& operation) override;
  Picture picture() override;
  bool is_lost() override;
  std::vector<Extent> data_of(const std::string& path) override;
  std::string bytes_of(const std::string& path, Bytes offset, Bytes length) override;
  std::vector<std::size_t> open_slots() const;
  // The last call.
  void exit() { run_at_once(process_.exit()); }

 private:
  Outcome open(const Operation& operation);
  Outcome list(const std::string& path);
  void add_to_picture(Picture& picture, const std::string& path, InodeNumber inode);

  Timestamp now_{2'000'000'000, 0};
  Session& session_;
  Process process_;
  std::array<int, kSlots> slots_;
};

}  // namespace perdura::fs::test
