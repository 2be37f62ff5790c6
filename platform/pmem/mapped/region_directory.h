// The directory of the regions inside one DAX device, which has no file system: a table at the
// device's start that maps names to extents.
//
//   0      header: seal, magic, version, size and alignment of the device        64 bytes
//   256    entry 0: seal, offset, size, name                                     256 bytes each
//   512    entry 1
//   ...                                                                          up to 256 KiB
//
// A seal is a checksum of the bytes that follow it in its header or entry (up to the end of the
// name, padded with zeros to a whole word). It is never 0; an entry whose seal is 0 is free. A seal
// is one word and therefore failure-atomic: an entry is written and made durable first, then its
// seal is written; an entry is removed by storing 0 to its seal. So after a power failure at any
// moment, an entry exists completely or not at all. A wrong seal cannot result from a crash; it
// means that the directory is damaged, and the device is refused.
//
// Not synchronized: the caller ensures that only one thread of one process uses the directory at a
// time (dax_device.h does so by a file lock).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/pmem/mapped/persistent_source.h"
#include "platform/pmem/region.h"

namespace perdura::pmem::mapped {

struct NamedExtent {
  std::string name{};
  Extent extent{};

  friend bool operator==(const NamedExtent&, const NamedExtent&) = default;
};

class RegionDirectory {
 public:
  static constexpr Bytes kSize = 256 * 1024;
  static constexpr Bytes kEntrySize = 256;
  static constexpr std::size_t kEntries = kSize / kEntrySize - 1;
  static constexpr std::size_t kMaxName = kEntrySize - 3 * kWord - 1;

  // `memory`: the device's first kSize bytes. Creates a directory if they are zeros or hold one
  // whose creation was interrupted. Throws UsageError if they hold something else, a damaged
  // directory, or one of a device of another size or alignment; `path` is used in the message.
  RegionDirectory(Region& memory, DeviceGeometry device, std::string path);

  std::vector<NamedExtent> regions() const;
  std::optional<Extent> find(std::string_view name) const;
  // Adds a region. Its name must be new and have 1 to kMaxName bytes, none of them zero. Throws
  // UsageError if the table is full. The change is durable on return.
  void add(const NamedExtent& region);
  // Removes a region; returns false if there is none of this name. The change is durable on return.
  bool remove(std::string_view name);

 private:
  struct Header;
  struct RegionRecord;

  Header header() const;
  void make();
  RegionRecord entry(std::size_t index) const;
  void commit(Bytes at, std::uint64_t seal);
  [[noreturn]] void refuse(std::string_view what) const;

  Region& memory_;
  DeviceGeometry device_;
  std::string path_;
};

}  // namespace perdura::pmem::mapped
