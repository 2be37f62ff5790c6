// Regions with names inside one DAX device (/dev/daxX.Y), or inside an ordinary file of the same
// shape: at its start the directory (region_directory.h), behind it the regions, each at a multiple
// of the device's alignment, which is what a device can be mapped by.
//
// Processes take turns: who looks at or changes the directory holds a lock of the device's first
// bytes, and who has a region mapped holds a lock of the region's bytes. So, as with a file that is
// removed, a region that somebody still uses keeps its memory, and nobody is given that until the
// last of them ends, in whichever way.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/pmem/mapped/mapping.h"
#include "platform/pmem/mapped/region_directory.h"

namespace perdura::pmem::mapped {

// The device's own path and, behind it, the name of a region there: "/dev/dax0.0" and
// "run/node-0/a" of "/dev/dax0.0/run/node-0/a". Nothing if no part of the path is a DAX device.
struct DevicePath {
  std::string device{};
  std::string name{};
};
std::optional<DevicePath> device_path(const std::string& path);

class DaxDevice {
 public:
  // Throws UsageError, with what to do, if the device is too small, has bad blocks or holds
  // something else, and PlatformError if it cannot be used.
  explicit DaxDevice(std::string path);
  // An ordinary file that is taken for a device.
  DaxDevice(std::string path, DeviceGeometry geometry);

  // New memory of zeros under a name that is not taken, else UsageError; also if there is no room.
  // The name appears, durably, when all of it is ready.
  std::shared_ptr<Mapping> create(const std::string& name, Bytes size);
  // Null if there is no such region.
  std::shared_ptr<Mapping> open(const std::string& name);
  // It is no error if there is none.
  void remove(const std::string& name);
  // All whose names begin so.
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
  PersistentMap map_;  // of the directory
};

}  // namespace perdura::pmem::mapped
