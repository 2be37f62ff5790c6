// The source of a mount (mount(8)): a file, on DAX, tmpfs or a disk, or a region of a DAX device. It
// is the file system's persistent memory, on the platform `shm`, with this process as the only node.
//
//   home.pm                 a file: the region `home.pm` of a node with the file's folder
//   /dev/dax0.0/home        the region `home` of a DAX device
//
// A file that is only read (Access::private_copy) need not be writable and stays as it is: changes
// by the system, for example in recovery, are private to the process. Several processes may read it
// at the same time. A region of a DAX device is always used in place.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "platform/pmem/mapped/mapping.h"
#include "platform/shm/shm_platform.h"
#include "services/fs/fs.h"

namespace perdura::mount {

using pmem::mapped::Access;

class MountSource {
 public:
  // The file need not exist yet. A symbolic link is resolved. Throws UsageError if the name is
  // impossible, or if there is something other than a file.
  explicit MountSource(const std::string& path);

  const std::string& path() const { return path_; }
  bool is_in_device() const { return !device_.empty(); }
  const std::string& name() const { return name_; }  // name of the region
  bool exists() const;

  // A cluster of this process only, whose persistent memory holds the source.
  std::unique_ptr<ShmPlatform> platform(Access access) const;
  // Runs a task on a platform of its own. Returns when it has ended.
  void run(const std::function<Task<>(Thread&)>& body, Access access = Access::in_place) const;

 private:
  std::string path_;
  std::string folder_;
  std::string name_;
  std::string device_;  // the device that the region is in; empty for a file
};

// There are two locks: one for processes that have mounted a source, another for those that use it.
// A process whose file system was unmounted by umount(8), which does not wait for it, still writes
// for a while and has to be waited for. The system that uses a region holds the lock that keeps
// others from it (Node::own_region()).

// Throws UsageError if there is no such source, if it is mounted, or if a process does not give it
// up in time.
void wait_until_free(const MountSource& source, Access access = Access::in_place);

// Marks a source as mounted, for wait_until_free() of other processes. The kernel removes the mark
// with the process.
class MountMark {
 public:
  void begin(const MountSource& source, Access access);
  void end() { lock_.reset(); }

 private:
  std::optional<pmem::mapped::File> lock_;
};

}  // namespace perdura::mount
