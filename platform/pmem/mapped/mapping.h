// A file mapped into this process, shared with other processes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "platform/units.h"

namespace perdura::pmem::mapped {

class Mapping {
 public:
  Mapping(std::byte* base, Bytes size) : base_(base), size_(size) {}
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* data() const { return base_; }
  Bytes size() const { return size_; }

 private:
  std::byte* base_;
  Bytes size_;
};

// Maps the whole file for reading and writing. A file that this process has mapped already is not
// mapped a second time: all nodes of a process see the same addresses. Throws PlatformError; `path`
// is for its message.
std::shared_ptr<Mapping> map_file(int fd, const std::string& path);

// A file descriptor that closes itself.
class File {
 public:
  File() = default;
  explicit File(int fd) : fd_(fd) {}
  File(File&& other) noexcept : fd_(other.release()) {}
  File& operator=(File&& other) noexcept;
  ~File();

  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }
  int release();

 private:
  int fd_ = -1;
};

// The text of errno, for messages.
std::string error_text(int error);

}  // namespace perdura::pmem::mapped
