// The sources of mounts (mount(8)): a file system, and the platform on which this process reaches it.
//
// A MountSource is a place: a file, on DAX, tmpfs or a disk, or a region of a DAX device. It is the
// file system's persistent memory, on the platform `shm`, with this process as the only node.
//
//   home.pm                 a file: the region `home.pm` of a node with the file's folder
//   /dev/dax0.0/home        the region `home` of a DAX device
//
// A file that is only read (Access::private_copy) need not be writable and stays as it is: changes
// by the system, for example in recovery, are private to the process. Several processes may read it
// at the same time. A region of a DAX device is always used in place.
//
// The other kind of source is a file system over a cluster (cluster_config.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "platform/platform.h"
#include "platform/pmem/mapped/mapping.h"
#include "platform/shm/shm_platform.h"
#include "services/fs/fs.h"

namespace perdura::mount {

using pmem::mapped::Access;
using pmem::mapped::File;

// The platform on which a mount reaches its file system, and the node of it that the mount is.
struct MountingNode {
  std::unique_ptr<Platform> platform;
  NodeId node = 0;
};

class Source {
 public:
  virtual ~Source() = default;
  virtual const std::string& path() const = 0;  // the name by which people know it
  virtual const std::string& name() const = 0;  // name of the file system
  // Without the members that each mount sets itself.
  virtual fs::FsConfig config() const = 0;
  virtual MountingNode platform(Access access) const = 0;
  // True if others may change the file system while it is mounted here, so that the kernel must not
  // remember any of it.
  virtual bool is_shared() const = 0;
  // True if the system's changes to memory are discarded.
  virtual bool is_discarded(Access access) const = 0;

  // Called before the mount is made. Throws UsageError if the source cannot be used.
  virtual void prepare(Access access) const = 0;
  // The mark of a source that is mounted, for other processes; it ends with the result.
  virtual std::optional<File> mark(Access access) const = 0;
  // The file whose pages the mount should bring into memory; empty if there is none.
  virtual std::string memory(Access access) const = 0;
};

class MountSource final : public Source {
 public:
  // The file need not exist yet. A symbolic link is resolved. Throws UsageError if the name is
  // impossible, or if there is something other than a file.
  explicit MountSource(const std::string& path);

  const std::string& path() const override { return path_; }
  bool is_in_device() const { return !device_.empty(); }
  const std::string& name() const override { return name_; }  // also the name of the region
  bool exists() const;

  fs::FsConfig config() const override { return {.parameters = {}}; }
  // A cluster of this process only, whose persistent memory holds the source.
  MountingNode platform(Access access) const override;
  bool is_shared() const override { return false; }
  bool is_discarded(Access access) const override {
    return access == Access::private_copy && !is_in_device();
  }
  void prepare(Access access) const override;
  std::optional<File> mark(Access access) const override;
  // Pages of a private copy are not brought into memory, as each would be copied.
  std::string memory(Access access) const override { return is_discarded(access) ? "" : path_; }

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
// others from it (Node::own_region()). The kernel removes both with the process.

// Throws UsageError if there is no such source, if it is mounted, or if a process does not give it
// up in time.
void wait_until_free(const MountSource& source, Access access = Access::in_place);

}  // namespace perdura::mount
