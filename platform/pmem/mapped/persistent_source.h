// What libpmem2 knows about a file or a device: how to map it so that flushed lines are durable,
// its alignment, its bad blocks. In a build without libpmem2 files are mapped, on DAX with
// MAP_SYNC, and the rest is unknown or refused, with the reason.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "platform/base/units.h"

namespace perdura::pmem::mapped {

// The smallest thing that can be made durable: what a store that has become visible needs to
// survive a power failure.
enum class Granularity : std::uint8_t {
  byte,        // nothing: the caches are in the persistence domain (eADR)
  cache_line,  // a flush and a fence
  page,        // msync(): it is in the page cache of a file system without DAX
  unknown,     // nobody asked: it is no persistent memory
};
constexpr bool is_on_dax(Granularity granularity) {
  return granularity == Granularity::byte || granularity == Granularity::cache_line;
}

// Of a file or a device.
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

// `path` is for the messages of PlatformError. Of a DAX device `extent` must be aligned.
PersistentMap map_persistent(int fd, Extent extent, const std::string& path);

// Makes what is visible there durable even if the power fails in a way that the machine's own
// flushing (ADR, eADR) does not survive. Returns what went wrong, or nothing. Far slower than a
// flush: pmem2_deep_flush(3).
std::string deep_flush(const PersistentMap& map);

// Of a DAX device. Throws PlatformError, UsageError without libpmem2.
struct DeviceGeometry {
  Bytes size = 0;
  Bytes alignment = 0;  // of mappings
};
DeviceGeometry device_geometry(int fd, const std::string& path);

// Uncorrectable errors of the medium: to touch one ends the process (SIGBUS).
struct BadBlocks {
  std::vector<Extent> extents{};
  std::string unknown{};  // why, if nobody could be asked
};
BadBlocks bad_blocks_of(int fd);

// Throws UsageError if there are any: how many, where, what to do. `device`: a DAX device and not a
// file of a DAX file system.
void refuse_bad_blocks(const BadBlocks& found, const std::string& path, bool device);

}  // namespace perdura::pmem::mapped
