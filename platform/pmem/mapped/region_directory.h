// The names of the regions inside one DAX device, which has no file system: a table at the device's
// start that says which region is where.
//
//   0      header: seal, magic, version, size and alignment of the device        64 bytes
//   256    entry 0: seal, offset, size, name                                     256 bytes each
//   512    entry 1
//   ...                                                                          up to 256 KiB
//
// A seal is the checksum of what follows it in its header or entry (up to the name's end, filled to
// a word with zeros), and never 0; an entry whose seal is 0 is free. Seals are words, so they are
// failure-atomic: an entry is written and made durable first, then its seal; it is removed by
// storing 0 to its seal. Whenever the power fails, a region is there with all of its entry or not
// at all. A seal that is wrong is no crash but a damage, and refused.
//
// Not synchronized: one at a time, also among processes (dax_device.h).
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

  // `memory`: the device's first kSize bytes. If they are zeros, or a directory whose making was
  // interrupted, makes one. Throws UsageError if something else is there, or the directory of a
  // device of another size or alignment, or a damaged one; `path` is for the message.
  RegionDirectory(Region& memory, DeviceGeometry device, std::string path);

  std::vector<NamedExtent> regions() const;
  std::optional<Extent> find(std::string_view name) const;
  // The name must be new, 1 to kMaxName bytes without zeros. Throws UsageError if the table is
  // full. Durable on return, like remove().
  void add(const NamedExtent& region);
  // False if there is none.
  bool remove(std::string_view name);

 private:
  struct Header;
  struct Entry;

  Header header() const;
  void make();
  Entry entry(std::size_t index) const;
  void commit(Bytes at, std::uint64_t seal);
  [[noreturn]] void refuse(std::string_view what) const;

  Region& memory_;
  DeviceGeometry device_;
  std::string path_;
};

}  // namespace perdura::pmem::mapped
