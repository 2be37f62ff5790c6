// What the place of persistent memory promises, for whoever reads the results: the same run on DAX
// and on a tmpfs looks alike, and only one of them survives a power failure.
#pragma once

#include <string>
#include <string_view>

#include "platform/pmem/mapped/persistent_source.h"

namespace perdura::pmem::mapped {

enum class PlaceKind : std::uint8_t {
  device_dax,
  dax_file_system,
  tmpfs,
  page_cache,  // of any other file system
};
std::string_view to_string(PlaceKind kind);

struct Place {
  PlaceKind kind = PlaceKind::page_cache;
  Granularity granularity = Granularity::unknown;
  // "file-system DAX with MAP_SYNC; a flushed line is durable", "tmpfs; survives processes, not
  // power".
  std::string promise{};
};
std::string_view to_string(Granularity granularity);

// Of a directory or a DAX device, by mapping memory there. Throws like DaxDevice().
Place place_of(const std::string& path);

}  // namespace perdura::pmem::mapped
