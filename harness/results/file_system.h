// Describes what persistent memory is stored on, for manifest.json: a file system without DAX is
// only the page cache of a disk.
#pragma once

#include <filesystem>
#include <string>

namespace perdura::harness {

struct FileSystem {
  std::filesystem::path directory{};
  std::string mount_point{};  // this one and the next two: "unknown" if they are, "none" of a
                              // DAX device
  std::string type{};         // ext4, xfs, tmpfs
  std::string
      mount_options{};  // options of the mount and of the file system, as the kernel reports them
  std::string
      dax{};  // whether a new file in `directory` is mapped directly: "yes", "no", or "unknown"
  // Properties of the persistent memory (platform/pmem/mapped/storage.h):
  std::string granularity{};
  std::string promise{};

  bool operator==(const FileSystem&) const = default;
};

// Describes the file system of an existing directory. `mounts` is in the format of
// /proc/self/mountinfo (man 5 proc).
FileSystem file_system_of(const std::filesystem::path& directory,
                          const std::filesystem::path& mounts = "/proc/self/mountinfo");

// The same together with what persistent memory guarantees there; `path` may also be a DAX device.
FileSystem persistent_memory_of(const std::filesystem::path& path);

// "/mnt/pmem0 on ext4 at /mnt/pmem0 (rw,dax=always), DAX: yes".
std::string to_string(const FileSystem& file_system);

}  // namespace perdura::harness
