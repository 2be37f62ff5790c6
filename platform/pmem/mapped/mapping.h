// A file, or a part of a DAX device, mapped into this process and shared with other processes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "platform/base/units.h"
#include "platform/pmem/mapped/persistent_source.h"

namespace perdura::pmem::mapped {

class Mapping {
 public:
  // Memory of mmap(), unmapped at the end; its first `size` bytes of `mapped`.
  Mapping(std::byte* base, Bytes size, Bytes mapped) : base_(base), size_(size), pages_(mapped) {}
  // Persistent memory: its first `size` bytes. What `holder` holds goes with it. At the end, what
  // is on DAX is flushed deeply: who closes a region in good order shall have it even if the
  // machine's flushing at a power failure fails some day (docs/dax.md).
  Mapping(PersistentMap map, Bytes size, std::string path, std::shared_ptr<void> holder = nullptr);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* data() const { return base_; }
  Bytes size() const { return size_; }
  // Of the whole mapping, which on a DAX device is a multiple of its alignment.
  Bytes mapped_size() const { return pages_; }
  Granularity granularity() const { return map_.granularity; }
  bool is_on_dax() const { return mapped::is_on_dax(map_.granularity); }

 private:
  std::byte* base_;
  Bytes size_;
  Bytes pages_;
  std::string path_{};              // of persistent memory
  std::shared_ptr<void> holder_{};  // let go after the memory
  PersistentMap map_{};
};

// Maps the whole file for reading and writing. A file that this process has mapped already is not
// mapped a second time: all nodes of a process see the same addresses. Throws PlatformError; `path`
// is for its message.
std::shared_ptr<Mapping> map_file(int fd, const std::string& path);
// The same through libpmem2, of a file of persistent memory.
std::shared_ptr<Mapping> map_pool(int fd, const std::string& path);
// The same of a part of a device, which must be aligned; its first `size` bytes are wanted.
std::shared_ptr<Mapping> map_part(int fd, Extent part, Bytes size, const std::string& path,
                                  std::shared_ptr<void> holder);

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
