// A file, or a part of a DAX device, mapped into this process and shared with other processes.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "platform/base/units.h"
#include "platform/pmem/mapped/persistent_source.h"

namespace perdura::pmem::mapped {

class Mapping {
 public:
  // Owns `mapped` bytes of memory from mmap(), of which the first `size` are used.
  Mapping(std::byte* base, Bytes size, Bytes mapped) : base_(base), size_(size), pages_(mapped) {}
  // Owns a mapping of persistent memory, of which the first `size` bytes are used. `holder` is kept
  // until the memory is unmapped. The destructor does a deep flush of memory on DAX, so that a
  // region that was closed properly survives even if the machine's own flushing fails at a later
  // power failure (docs/dax.md).
  Mapping(PersistentMap map, Bytes size, std::string path, std::shared_ptr<void> holder = nullptr);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* data() const { return base_; }
  Bytes size() const { return size_; }
  // The size of the whole mapping, which on a DAX device is a multiple of its alignment.
  Bytes mapped_size() const { return pages_; }
  Granularity granularity() const { return map_.granularity; }
  bool is_on_dax() const { return mapped::is_on_dax(map_.granularity); }

 private:
  std::byte* base_;
  Bytes size_;
  Bytes pages_;
  std::string path_{};              // set for persistent memory only
  std::shared_ptr<void> holder_{};  // released after the memory
  PersistentMap map_{};
};

// How a process uses a file that holds a region.
enum class Access : std::uint8_t {
  in_place,
  // The file is only read, and need not be writable: stores to the region stay in this process'
  // memory.
  private_copy,
};

// Maps the whole file for reading and writing. If this process has mapped the file already, returns
// that mapping: all nodes of a process see the same addresses. Throws PlatformError; `path` is used
// in its message.
std::shared_ptr<Mapping> map_file(int fd, const std::string& path);
// Like map_file(), through libpmem2, for a file of persistent memory.
std::shared_ptr<Mapping> map_pool(int fd, const std::string& path);
// Maps the whole file as a private copy, whose pages are read from the file until they are changed.
std::shared_ptr<Mapping> map_private(int fd, const std::string& path);
// Maps a part of a device, which must be aligned; the caller uses its first `size` bytes.
std::shared_ptr<Mapping> map_part(int fd, Extent part, Bytes size, const std::string& path,
                                  std::shared_ptr<void> holder);

// A file descriptor that closes itself. It is never 0, 1 or 2, even where the process was started
// without these (daemons, cron): otherwise output to standard error would end up in the file.
class File {
 public:
  File() = default;
  // Takes over the descriptor; if it is one of these three, moves it to a higher number. Leaves
  // errno unchanged if `fd` is negative.
  explicit File(int fd);
  File(File&& other) noexcept : fd_(other.release()) {}
  File& operator=(File&& other) noexcept;
  ~File();

  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }
  int release();

 private:
  int fd_ = -1;
};

// The locks of a pool, each for one user at a time. Each is the lock of a byte far beyond all data of
// the pool's file, or all regions of its device.
enum class PoolLock : std::uint8_t {
  ownership,  // Node::own_region()
  mount,      // a mount that programs use (mount/source.h)
};
inline constexpr Bytes kPoolLocks = 2;
// Takes a lock; users with a private copy share it. Returns nullopt if it is held already.
// `offset`: of the pool in the file. `part`: of the pool, each of which has locks of its own.
std::optional<File> try_lock(File file, PoolLock which, Bytes offset, const std::string& path,
                             Access access = Access::in_place, std::uint32_t part = 0);

// The text of an errno value, for messages.
std::string error_text(int error);

}  // namespace perdura::pmem::mapped
