// Where a file system lies: a file, on DAX, tmpfs or a disk, or a region of a DAX device. It is the
// file system's persistent memory, on the platform `shm`, of which this process is the only node.
//
//   home.pm                 a file: the region `home.pm` of a node whose folder is the file's
//   /dev/dax0.0/home        the region `home` of a DAX device
//
// A file that is only read (Access::private_copy) need not be writable, and stays as it is: what a
// system changes, such as in recovery, is this process' own. Processes that only read it use it at
// the same time. A region of a DAX device is used in place by all.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "platform/pmem/mapped/mapping.h"
#include "platform/shm/shm_platform.h"
#include "services/fs/fs.h"

namespace perdura::fs {

using pmem::mapped::Access;

class Place {
 public:
  // Nothing need be there yet. Of a symbolic link: what it leads to. Throws UsageError if its name
  // cannot be one, or if it is no file.
  explicit Place(const std::string& path);

  const std::string& path() const { return path_; }
  bool is_in_device() const { return !device_.empty(); }
  const std::string& name() const { return name_; }  // of the region
  bool exists() const;

  // A cluster of this process alone, whose persistent memory holds the place.
  std::unique_ptr<ShmPlatform> platform(Access access) const;
  // Runs a task on a platform of its own and returns when it has ended.
  void run(const std::function<Task<>(Thread&)>& body, Access access = Access::in_place) const;

 private:
  std::string path_;
  std::string folder_;
  std::string name_;
  std::string device_;  // that the region is in; else empty
};

// Who has mounted a place is told apart from who only still writes to it: a process whose file
// system was unmounted by umount(8), which does not wait for it, is to be waited for. The region
// itself is kept from others by the system that uses it (Node::own_region()).

// Throws UsageError if there is no such place, if programs use a mount of it, or if a process has
// it for too long.
void wait_until_free(const Place& place, Access access = Access::in_place);

// Says that a place is mounted, to wait_until_free() of other processes. The kernel ends it with
// the process.
class MountMark {
 public:
  void begin(const Place& place, Access access);
  void end() { lock_.reset(); }

 private:
  std::optional<pmem::mapped::File> lock_;
};

}  // namespace perdura::fs
