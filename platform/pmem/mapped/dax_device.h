// Named regions inside one DAX device (/dev/daxX.Y), or inside an ordinary file with the same
// layout: the directory (region_directory.h) is at the start; the regions follow, each aligned to
// the device's alignment, since a device can be mapped only in such units.
//
// File locks synchronize processes: a process that reads or changes the directory holds an
// exclusive lock on the device's first bytes, and a process that has a region mapped holds a shared
// lock on the region's bytes. So a removed region that is still in use keeps its memory, as a
// removed file does: the space is not reused until the last process that has it mapped closes it or
// ends.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/pmem/mapped/mapping.h"
#include "platform/pmem/mapped/region_directory.h"

namespace perdura::pmem::mapped {

// A path split into the device's own path and the name of a region in it:
// "/dev/dax0.0/run/node-0/a" is "/dev/dax0.0" and "run/node-0/a". device_path() returns nullopt if
// no prefix of the path is a DAX device.
struct DevicePath {
  std::string device{};
  std::string name{};
};
std::optional<DevicePath> device_path(const std::string& path);
// The folder below /sys in which Linux describes a character device.
std::string folder_of_device(const std::string& device);

class DaxDevice {
 public:
  // Throws UsageError, which says what to do, if the device is too small, has bad blocks or holds
  // something else, and PlatformError if the device cannot be used.
  explicit DaxDevice(std::string path);
  // Treats an ordinary file as a device of that geometry.
  DaxDevice(std::string path, DeviceGeometry geometry);

  // Creates a region filled with zeros. Throws UsageError if the name is taken or there is no room.
  // The name appears, durably, only when the whole region is ready.
  std::shared_ptr<Mapping> create(const std::string& name, Bytes size);
  // Returns null if there is no such region.
  std::shared_ptr<Mapping> open(const std::string& name);
  // lock_pool_file() for a region. Throws UsageError if there is none of that name.
  std::optional<File> lock(const std::string& name, PoolLock which, std::uint32_t part = 0);
  // Does nothing if there is no such region.
  void remove(const std::string& name);
  // Removes all regions whose names begin with `prefix`.
  void remove_all(std::string_view prefix);

  std::vector<NamedExtent> regions();
  const DeviceGeometry& geometry() const { return geometry_; }
  Granularity granularity() const { return map_.granularity; }

 private:
  class Turn;

  void check_size() const;
  Bytes round_up(Bytes size) const {
    return (size + geometry_.alignment - 1) / geometry_.alignment * geometry_.alignment;
  }
  Bytes first_region() const { return round_up(RegionDirectory::kSize); }
  Extent find_room(Turn& turn, const std::string& name, Bytes size) const;
  std::shared_ptr<Mapping> map(Extent extent, const std::string& name) const;
  File open_file() const;

  std::string path_;
  File file_;
  DeviceGeometry geometry_;
  PersistentMap map_;  // the mapping of the directory
};

}  // namespace perdura::pmem::mapped
