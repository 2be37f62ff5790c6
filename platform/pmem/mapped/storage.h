// Determines the guarantees of the place where persistent memory is, so that results can be
// interpreted: a run on DAX and a run on tmpfs look alike, but only the data on DAX survives a
// power failure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "platform/pmem/mapped/persistent_source.h"

namespace perdura::pmem::mapped {

enum class PlaceKind : std::uint8_t {
  device_dax,
  dax_file_system,
  tmpfs,
  page_cache,  // any other file system
};
std::string_view to_string(PlaceKind kind);

struct Place {
  PlaceKind kind = PlaceKind::page_cache;
  Granularity granularity = Granularity::unknown;
  // True if data that is flushed there survives a power failure; nullopt if that is not known.
  std::optional<bool> persistent{};
  // The guarantee as text, such as "file-system DAX with MAP_SYNC; a flushed line is durable" or
  // "tmpfs; survives processes, not power".
  std::string promise{};
};
std::string_view to_string(Granularity granularity);

struct DaxMemory;
// The place of a DAX device with such memory; `geometry`: the device's size, as text for the
// promise.
Place place_on_device(const DaxMemory& memory, Granularity granularity,
                      const std::string& geometry);

// Determines the place of a directory or a DAX device by mapping memory there. Throws what
// DaxDevice() throws.
Place place_of(const std::string& path);

}  // namespace perdura::pmem::mapped
