// The services of libpmem2 for a file or a device: a mapping in which flushed lines are durable,
// the alignment, the bad blocks. In a build without libpmem2, files are mapped directly (on DAX
// with MAP_SYNC); everything else is reported as unknown or refused, with the reason.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "platform/base/units.h"

namespace perdura::pmem::mapped {

// The granularity of persistence: what must be done so that a visible store survives a power
// failure.
enum class Granularity : std::uint8_t {
  byte,        // nothing; the caches are in the persistence domain (eADR)
  cache_line,  // a flush and a fence
  page,        // msync(); the data is in the page cache of a file system without DAX
  unknown,     // it was not determined: the memory is not persistent
};
constexpr bool is_on_dax(Granularity granularity) {
  return granularity == Granularity::byte || granularity == Granularity::cache_line;
}

// A byte range of a file or a device.
struct Extent {
  Bytes offset = 0;
  Bytes length = 0;

  friend bool operator==(const Extent&, const Extent&) = default;
};

struct PersistentMap {
  std::byte* base = nullptr;
  Bytes length = 0;
  Granularity granularity = Granularity::unknown;
  std::shared_ptr<void> handle{};  // unmaps it
};

bool have_libpmem2();

// Throws PlatformError; `path` is used in its message. `extent` of a DAX device must be aligned.
PersistentMap map_persistent(int fd, Extent extent, const std::string& path);

// Deep flush (pmem2_deep_flush(3)): makes the visible content durable even if the machine's own
// flushing (ADR, eADR) fails at a power failure. Returns a description of the error, or an empty
// string. Far slower than a flush.
std::string deep_flush(const PersistentMap& map);

// The geometry of a DAX device. device_geometry() throws PlatformError, or UsageError in a build
// without libpmem2.
struct DeviceGeometry {
  Bytes size = 0;
  Bytes alignment = 0;  // required of mappings
};
DeviceGeometry device_geometry(int fd, const std::string& path);

// Uncorrectable errors of the medium. Accessing one ends the process (SIGBUS).
struct BadBlocks {
  std::vector<Extent> extents{};
  std::string unknown{};  // the reason if bad blocks cannot be queried
};
BadBlocks bad_blocks_of(int fd);

// Throws UsageError if there are bad blocks; it says how many, where, and what to do. `device`: the
// path is a DAX device, not a file of a DAX file system.
void refuse_bad_blocks(const BadBlocks& found, const std::string& path, bool device);

}  // namespace perdura::pmem::mapped
